import COpenSSL
import HoldfastCore

/// HMAC in one call, with each of the hashes that JOSE and OATH use.
///
/// Source: RFC 2104; RFC 7518 §3.2. Timing: depends on byte counts alone.
public enum HMAC: Sendable {
  case sha1, sha256, sha384, sha512

  /// The bytes of a full code: 20, 32, 48 or 64.
  public var byteCount: Int {
    switch self {
    case .sha1: 20
    case .sha256: 32
    case .sha384: 48
    case .sha512: 64
    }
  }

  /// Writes the first `code.count` bytes, at most ``byteCount``, of the code of `message` under `key`, of any length.
  public func authenticate(
    _ message: Span<UInt8>, key: Span<UInt8>, into code: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    guard code.count <= byteCount, let keyByteCount = CInt(exactly: key.count) else { throw CryptographyFailure() }
    var full = Secret<64>()
    let succeeded = full.withMutableBytes { full in
      unsafe message.withUnsafeBufferPointer { message in
        unsafe key.withUnsafeBufferPointer { key in
          unsafe full.withUnsafeMutableBufferPointer { full in
            unsafe COpenSSL.HMAC(
              digest, key.baseAddress, keyByteCount, message.baseAddress, message.count, full.baseAddress, nil) != nil
          }
        }
      }
    }
    guard succeeded else { throw failure() }
    full.withBytes { full in
      for index in code.indices { code[index] = full[index] }
    }
  }

  /// Throws unless `code` is the first `code.count` bytes, at least 10, of the code of `message` under `key`.
  ///
  /// Timing: the comparison does not show where they differ.
  public func verify(
    _ code: Span<UInt8>, of message: Span<UInt8>, key: Span<UInt8>
  ) throws(CryptographyFailure) {
    guard code.count >= 10, code.count <= byteCount else { throw CryptographyFailure() }
    var expected = SecretBytes(zeros: code.count)
    var bytes = expected.mutableBytes
    try authenticate(message, key: key, into: &bytes)
    guard constantTimeEqual(expected.bytes, code) else { throw CryptographyFailure() }
  }

  /// libcrypto's hash.
  var digest: OpaquePointer? {
    switch self {
    case .sha1: unsafe EVP_sha1()
    case .sha256: unsafe EVP_sha256()
    case .sha384: unsafe EVP_sha384()
    case .sha512: unsafe EVP_sha512()
    }
  }
}
