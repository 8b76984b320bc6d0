import COpenSSL
import HoldfastCore

/// AES key wrap with the default initial value, its context kept from call to call.
///
/// Source: RFC 3394 §2.2.
struct KeyWrapCipher: ~Copyable {
  private let context: Handle
  private let keyByteCount: Int

  /// `keyByteCount` is 16, 24 or 32.
  init(keyByteCount: Int) throws(CryptographyFailure) {
    let name: String
    switch keyByteCount {
    case 16: name = "AES-128-WRAP"
    case 24: name = "AES-192-WRAP"
    case 32: name = "AES-256-WRAP"
    default: throw CryptographyFailure()
    }
    let cipher = try unsafe Handle(EVP_CIPHER_fetch(nil, name, nil), freedBy: EVP_CIPHER_free)
    let context = try unsafe Handle(EVP_CIPHER_CTX_new(), freedBy: EVP_CIPHER_CTX_free)
    unsafe EVP_CIPHER_CTX_set_flags(context.pointer, CInt(EVP_CIPHER_CTX_FLAG_WRAP_ALLOW))
    try check(unsafe EVP_CipherInit_ex2(context.pointer, cipher.pointer, nil, nil, 0, nil))
    self.context = context
    self.keyByteCount = keyByteCount
  }

  /// Unwraps `wrapped`, whose count is 8 more than that of `output` and a multiple of 8; throws when its integrity value is wrong.
  mutating func unwrap(
    key: Span<UInt8>, wrapped: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard wrapped.count >= 24, output.count == wrapped.count - 8 else { throw CryptographyFailure() }
    try run(encrypting: false, key: key, input: wrapped, into: &output)
  }

  /// Wraps `plain`, whose count is a multiple of 8 and at least 16, into 8 bytes more.
  mutating func wrap(
    key: Span<UInt8>, plain: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard plain.count >= 16, output.count == plain.count + 8 else { throw CryptographyFailure() }
    try run(encrypting: true, key: key, input: plain, into: &output)
  }

  private func run(
    encrypting: Bool, key: Span<UInt8>, input: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard key.count == keyByteCount, input.count % 8 == 0, let count = CInt(exactly: input.count) else {
      throw CryptographyFailure()
    }
    var written: CInt = 0
    let result = unsafe key.withUnsafeBufferPointer { key in
      unsafe EVP_CipherInit_ex2(context.pointer, nil, key.baseAddress, nil, encrypting ? 1 : 0, nil)
    }
    try check(result)
    let updated = unsafe input.withUnsafeBufferPointer { input in
      unsafe output.withUnsafeMutableBufferPointer { output in
        unsafe EVP_CipherUpdate(context.pointer, output.baseAddress, &written, input.baseAddress, count)
      }
    }
    guard updated == 1, Int(written) == output.count else {
      wipe(&output)
      throw failure()
    }
  }
}
