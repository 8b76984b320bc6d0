import COpenSSL
import HoldfastCore

/// A key derivation function of libcrypto with one hash. The context is kept between calls.
struct KeyDerivation: ~Copyable {
  private let context: Handle
  private let digestName: StaticString

  enum Function {
    /// HKDF, extract and expand. Source: RFC 5869 §2.
    case hkdf
    /// One-step derivation with a hash, as in JOSE's Concat KDF. Source: SP 800-56C §4.1; RFC 7518 §4.6.2.
    case concatenation
  }

  init(_ function: Function, digestName: StaticString = "SHA256") throws(CryptographyFailure) {
    let name =
      switch function {
      case .hkdf: "HKDF"
      case .concatenation: "SSKDF"
      }
    let algorithm = try unsafe Handle(EVP_KDF_fetch(nil, name, nil), freedBy: EVP_KDF_free)
    let context = try unsafe Handle(EVP_KDF_CTX_new(algorithm.pointer), freedBy: EVP_KDF_CTX_free)
    self.context = context
    self.digestName = digestName
  }

  /// Fills `output`; an empty `salt` is equivalent to none.
  mutating func derive(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    let result = unsafe withParameters(inputKey: inputKey, salt: salt, info: info) { parameters in
      unsafe output.withUnsafeMutableBufferPointer { output in
        unsafe EVP_KDF_derive(context.pointer, output.baseAddress, output.count, parameters)
      }
    }
    unsafe EVP_KDF_CTX_reset(context.pointer)
    guard result == 1 else {
      wipe(&output)
      throw failure()
    }
  }

  private func withParameters(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, _ body: (UnsafePointer<OSSL_PARAM>?) -> CInt
  ) -> CInt {
    unsafe inputKey.withUnsafeBufferPointer { inputKey in
      unsafe salt.withUnsafeBufferPointer { salt in
        unsafe info.withUnsafeBufferPointer { info in
          var parameters = unsafe InlineArray<5, OSSL_PARAM>(repeating: OSSL_PARAM_construct_end())
          unsafe parameters[0] = utf8Parameter("digest", digestName)
          unsafe parameters[1] = octetParameter("key", inputKey)
          var next = 2
          if !salt.isEmpty {
            unsafe parameters[next] = octetParameter("salt", salt)
            next += 1
          }
          if !info.isEmpty { unsafe parameters[next] = octetParameter("info", info) }
          return unsafe parameters.span.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
        }
      }
    }
  }
}

/// Returns a parameter that points at `bytes`. The pointer is not null even for an empty one, because libcrypto reads null as
/// absent.
func octetParameter(_ name: StaticString, _ bytes: UnsafeBufferPointer<UInt8>) -> OSSL_PARAM {
  let start = unsafe bytes.baseAddress ?? name.utf8Start
  return unsafe OSSL_PARAM_construct_octet_string(
    cString(name), UnsafeMutableRawPointer(mutating: start), bytes.count)
}

/// Returns a parameter that points at `text`.
func utf8Parameter(_ name: StaticString, _ text: StaticString) -> OSSL_PARAM {
  unsafe OSSL_PARAM_construct_utf8_string(cString(name), UnsafeMutablePointer(mutating: cString(text)), 0)
}

/// Returns the zero-terminated bytes of a literal, which are valid as long as the process runs.
func cString(_ text: StaticString) -> UnsafePointer<CChar> {
  unsafe UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

/// HKDF, extract and expand, in one call and with each of the hashes of ``HMAC``.
///
/// Source: RFC 5869 §2. Timing: depends only on byte counts.
package enum HKDF {
  /// Fills `output`, at most 255 times the hash's byte count. An empty `salt` is equivalent to none.
  ///
  /// - Throws: `CryptographyFailure` if `output` is empty or longer.
  package static func derive(
    hash: HMAC, inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    var function = try KeyDerivation(.hkdf, digestName: hash.digestName)
    try function.derive(inputKey: inputKey, salt: salt, info: info, into: &output)
  }

  /// Derives the same with SHA-256 by two HMACs. It takes far less time: libcrypto fetches the hash for each derivation.
  static func sha256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard (1...255 * SHA256Stream.byteCount).contains(output.count) else { throw CryptographyFailure() }
    var extraction = try HMACStream<SHA256Stream>(key: salt)
    extraction.append(inputKey)
    let pseudorandomKey = try extraction.finishSecret()
    var block = Secret<32>()
    for start in stride(from: 0, to: output.count, by: SHA256Stream.byteCount) {
      var mac = try pseudorandomKey.withBytes { (key) throws(CryptographyFailure) in
        try HMACStream<SHA256Stream>(key: key)
      }
      if start > 0 { block.withBytes { mac.append($0) } }
      mac.append(info)
      mac.append(UInt8(start / SHA256Stream.byteCount + 1))
      block = try mac.finishSecret()
      block.withBytes { block in
        for index in 0..<min(block.count, output.count - start) { output[start + index] = block[index] }
      }
    }
  }
}

extension HMAC {
  /// The name of the hash in libcrypto.
  fileprivate var digestName: StaticString {
    switch self {
    case .sha1: "SHA1"
    case .sha256: "SHA256"
    case .sha384: "SHA384"
    case .sha512: "SHA512"
    }
  }
}

/// PBKDF2, a key derivation from a passphrase that is slow through its number of iterations.
///
/// Source: RFC 8018 §5.2. Timing: depends only on the byte counts and the number of iterations.
package enum PBKDF2 {
  /// Fills `output`, at least one byte; throws if `iterationCount` is below 1.
  package static func derive(
    hash: HMAC, passphrase: Span<UInt8>, salt: Span<UInt8>, iterationCount: Int, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard iterationCount >= 1, let iterations = CInt(exactly: iterationCount), !output.isEmpty,
      let outputByteCount = CInt(exactly: output.count), let saltByteCount = CInt(exactly: salt.count),
      let passphraseByteCount = CInt(exactly: passphrase.count)
    else { throw CryptographyFailure() }
    let result = unsafe passphrase.withUnsafeBytes { passphrase in
      unsafe salt.withUnsafeBufferPointer { salt in
        unsafe output.withUnsafeMutableBufferPointer { output in
          unsafe PKCS5_PBKDF2_HMAC(
            passphrase.bindMemory(to: CChar.self).baseAddress, passphraseByteCount, salt.baseAddress, saltByteCount,
            iterations, hash.digest, outputByteCount, output.baseAddress)
        }
      }
    }
    guard result == 1 else {
      wipe(&output)
      throw failure()
    }
  }
}

/// The scrypt key derivation function, which is slow and needs much memory on purpose.
///
/// Source: RFC 7914 §6. Timing: its memory accesses depend on the password, as the algorithm prescribes.
package enum Scrypt {
  /// Fills `output` from a password and a salt, each of any number of bytes; throws if there is not enough memory.
  package static func derive(
    password: Span<UInt8>, salt: Span<UInt8>, cost: ScryptCost, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    // Twice the memory that RFC 7914 §2 requires, plus 1 MiB, leaves room for libcrypto's bookkeeping.
    let memoryLimit = 2 * cost.memoryByteCount + 1 << 20
    let result = unsafe password.withUnsafeBufferPointer { password in
      unsafe salt.withUnsafeBufferPointer { salt in
        unsafe output.withUnsafeMutableBufferPointer { output in
          // libcrypto treats a null password as none.
          let start = unsafe password.baseAddress ?? salt.baseAddress
          return unsafe EVP_PBE_scrypt(
            UnsafeRawPointer(start)?.assumingMemoryBound(to: CChar.self), password.count, salt.baseAddress, salt.count,
            UInt64(1) << UInt64(cost.logarithm), UInt64(cost.blockSize), UInt64(cost.parallelization),
            UInt64(memoryLimit), output.baseAddress, output.count)
        }
      }
    }
    guard result == 1 else {
      wipe(&output)
      throw failure()
    }
  }
}

/// The cost of a derivation with ``Scrypt``. It is bounded, so that a file from others cannot demand all of the memory.
///
/// Source: RFC 7914 §2.
package struct ScryptCost: Sendable, Equatable {
  /// The binary logarithm of N, 1 to 20.
  package let logarithm: Int
  /// The block size r, 1 to 8.
  package let blockSize: Int
  /// The parallelization p, 1 to 4.
  package let parallelization: Int

  /// Creates a cost; is nil outside these bounds, and for more than 256 MiB.
  package init?(logarithm: Int, blockSize: Int, parallelization: Int) {
    guard (1...20).contains(logarithm), (1...8).contains(blockSize), (1...4).contains(parallelization) else {
      return nil
    }
    (self.logarithm, self.blockSize, self.parallelization) = (logarithm, blockSize, parallelization)
    guard memoryByteCount <= 1 << 28 else { return nil }
  }

  private init(logarithm: Int) {
    (self.logarithm, blockSize, parallelization) = (logarithm, 8, 1)
  }

  /// N = 2^15, r = 8, p = 1: 32 MiB, about a tenth of a second.
  package static let interactive = ScryptCost(logarithm: 15)
  /// N = 2^17, r = 8, p = 1: 128 MiB, about half a second.
  package static let archive = ScryptCost(logarithm: 17)

  /// The memory that a derivation needs: 128 · r · N bytes.
  package var memoryByteCount: Int { 128 * blockSize << logarithm }
}

/// The Concat KDF with SHA-256.
///
/// Source: SP 800-56A §5.8.2.1; RFC 7518 §4.6.2.
package enum ConcatenationKDF {
  /// Fills `output` from a shared secret and the `OtherInfo` that states the purpose of the key.
  package static func derive(
    secret: Span<UInt8>, otherInfo: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    var function = try KeyDerivation(.concatenation)
    try function.derive(inputKey: secret, salt: secret.extracting(first: 0), info: otherInfo, into: &output)
  }
}
