import HoldfastCore

/// HKDF, extract and expand, in one call and with each of the hashes of ``HMAC``.
///
/// Source: RFC 5869 §2. ``OpenSSLCryptography`` keeps a context and is faster. Timing: depends on byte counts alone.
public enum HKDF {
  /// Fills `output`, at most 255 times the hash's bytes; an empty `salt` is the same as none.
  ///
  /// Throws when `output` is empty or longer than that.
  public static func derive(
    hash: HMAC, inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    var function = try KeyDerivation(.hkdf, digestName: hash.digestName)
    try function.derive(inputKey: inputKey, salt: salt, info: info, into: &output)
  }
}

extension HMAC {
  /// What libcrypto calls the hash.
  fileprivate var digestName: StaticString {
    switch self {
    case .sha1: "SHA1"
    case .sha256: "SHA256"
    case .sha384: "SHA384"
    case .sha512: "SHA512"
    }
  }
}
