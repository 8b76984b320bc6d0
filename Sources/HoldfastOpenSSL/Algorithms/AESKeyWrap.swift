import COpenSSL
import HoldfastCore

/// AES key wrap of any key size in one call.
///
/// Source: RFC 3394 §2.2; RFC 7518 §4.4.
package enum AESKeyWrap {
  /// Wraps `plain`, a multiple of 8 and at least 16 bytes, under a key of 16, 24 or 32 bytes; returns 8 bytes more.
  package static func wrap(key: Span<UInt8>, plain: Span<UInt8>) throws(CryptographyFailure) -> [UInt8] {
    var cipher = try KeyWrapCipher(keyByteCount: key.count)
    var wrapped = [UInt8](repeating: 0, count: plain.count + 8)
    var bytes = wrapped.mutableSpan
    try cipher.wrap(key: key, plain: plain, into: &bytes)
    return wrapped
  }

  /// Unwraps the output of ``wrap(key:plain:)``; throws if the integrity value is wrong.
  package static func unwrap(key: Span<UInt8>, wrapped: Span<UInt8>) throws(CryptographyFailure) -> SecretBytes {
    guard wrapped.count >= 24 else { throw CryptographyFailure() }
    var cipher = try KeyWrapCipher(keyByteCount: key.count)
    var plain = SecretBytes(zeros: wrapped.count - 8)
    var bytes = plain.mutableBytes
    try cipher.unwrap(key: key, wrapped: wrapped, into: &bytes)
    return plain
  }
}

/// AES key wrap with the default initial value. The context is kept between calls.
///
/// It is made of single blocks of AES, because libcrypto's own key wrap takes AES from tables, whose addresses depend on the key and on
/// what is wrapped (OpenSSL 3.0). Its AES for single blocks has instructions of the processor, or code without tables.
///
/// Source: RFC 3394 §2.2. Timing: it depends only on byte counts, and reveals whether the integrity value is right.
struct KeyWrapCipher: ~Copyable {
  private let context: Handle
  private let keyByteCount: Int

  /// Creates a cipher for keys of `keyByteCount` bytes: 16, 24 or 32.
  init(keyByteCount: Int) throws(CryptographyFailure) {
    let name: String
    switch keyByteCount {
    case 16: name = "AES-128-ECB"
    case 24: name = "AES-192-ECB"
    case 32: name = "AES-256-ECB"
    default: throw CryptographyFailure()
    }
    let cipher = try unsafe Handle(EVP_CIPHER_fetch(nil, name, nil), freedBy: EVP_CIPHER_free)
    let context = try unsafe Handle(EVP_CIPHER_CTX_new(), freedBy: EVP_CIPHER_CTX_free)
    try check(unsafe EVP_CipherInit_ex2(context.pointer, cipher.pointer, nil, nil, 0, nil))
    self.context = context
    self.keyByteCount = keyByteCount
  }

  /// Wraps `plain`, a multiple of 8 and at least 16 bytes, into `output`, which has 8 more.
  ///
  /// Source: RFC 3394 §2.2.1.
  mutating func wrap(
    key: Span<UInt8>, plain: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard plain.count >= 16, plain.count % 8 == 0, output.count == plain.count + 8 else { throw CryptographyFailure() }
    try begin(encrypting: true, key: key)
    for index in plain.indices { output[index + 8] = plain[index] }
    var register = WrapRegister()
    let count = plain.count / 8
    do throws(CryptographyFailure) {
      for step in 1...6 * count {
        let place = (step - 1) % count * 8 + 8
        register.take(output, at: place)
        try transform(&register)
        register.mix(step)
        register.leave(&output, at: place)
      }
    } catch {
      wipe(&output)
      throw error
    }
    register.withValue { value in
      for index in value.indices { output[index] = value[index] }
    }
  }

  /// Unwraps `wrapped`, a multiple of 8 bytes and 8 more than `output`; throws if its integrity value is wrong.
  ///
  /// Source: RFC 3394 §2.2.2.
  mutating func unwrap(
    key: Span<UInt8>, wrapped: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard wrapped.count >= 24, wrapped.count % 8 == 0, output.count == wrapped.count - 8 else {
      throw CryptographyFailure()
    }
    try begin(encrypting: false, key: key)
    for index in output.indices { output[index] = wrapped[index + 8] }
    var register = WrapRegister(wrapped.extracting(first: 8))
    let count = output.count / 8
    do throws(CryptographyFailure) {
      for step in stride(from: 6 * count, through: 1, by: -1) {
        let place = (step - 1) % count * 8
        register.take(output, at: place)
        register.mix(step)
        try transform(&register)
        register.leave(&output, at: place)
      }
    } catch {
      wipe(&output)
      throw error
    }
    guard register.withValue({ constantTimeEqual($0, WrapRegister.initialValue.span) }) else {
      wipe(&output)
      throw CryptographyFailure()
    }
  }

  private func begin(encrypting: Bool, key: Span<UInt8>) throws(CryptographyFailure) {
    guard key.count == keyByteCount else { throw CryptographyFailure() }
    let begun = unsafe key.withUnsafeBufferPointer { key in
      unsafe EVP_CipherInit_ex2(context.pointer, nil, key.baseAddress, nil, encrypting ? 1 : 0, nil)
    }
    try check(begun)
    unsafe EVP_CIPHER_CTX_set_padding(context.pointer, 0)
  }

  /// Encrypts or decrypts the block in place.
  private func transform(_ register: inout WrapRegister) throws(CryptographyFailure) {
    var written: CInt = 0
    let updated = register.block.withMutableBytes { block in
      unsafe block.withUnsafeMutableBufferPointer { block in
        unsafe EVP_CipherUpdate(context.pointer, block.baseAddress, &written, block.baseAddress, CInt(block.count))
      }
    }
    guard updated == 1, written == 16 else { throw failure() }
  }
}

/// The register A of a key wrap, and the part of the key that is with it in the block.
///
/// Source: RFC 3394 §2.2.
private struct WrapRegister: ~Copyable {
  /// The default initial value. Source: RFC 3394 §2.2.3.1.
  static var initialValue: InlineArray<8, UInt8> { InlineArray(repeating: 0xa6) }

  var block = Secret<16>()

  /// Creates the register with the initial value.
  init() {
    self.init(Self.initialValue.span)
  }

  init(_ value: Span<UInt8>) {
    block.withMutableBytes { block in
      for index in 0..<8 { block[index] = value[index] }
    }
  }

  /// Copies 8 bytes from `place` on into the block.
  mutating func take(_ bytes: borrowing MutableSpan<UInt8>, at place: Int) {
    block.withMutableBytes { block in
      for index in 0..<8 { block[index + 8] = bytes[place + index] }
    }
  }

  /// Copies the last 8 bytes of the block to `place`.
  borrowing func leave(_ bytes: inout MutableSpan<UInt8>, at place: Int) {
    block.withBytes { block in
      for index in 0..<8 { bytes[place + index] = block[index + 8] }
    }
  }

  /// Combines the register with the number of a step, counted from 1.
  mutating func mix(_ step: Int) {
    block.withMutableBytes { block in
      for index in 0..<8 { block[index] ^= UInt8(truncatingIfNeeded: step >> (56 - 8 * index)) }
    }
  }

  borrowing func withValue<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
    block.withBytes { body($0.extracting(first: 8)) }
  }
}
