import HoldfastCore

/// AES key wrap of any key size in one call.
///
/// Source: RFC 3394 §2.2; RFC 7518 §4.4.
public enum AESKeyWrap {
  /// Wraps `plain`, a multiple of 8 and at least 16 bytes, under a key of 16, 24 or 32 bytes; 8 bytes more come back.
  public static func wrap(key: Span<UInt8>, plain: Span<UInt8>) throws(CryptographyFailure) -> [UInt8] {
    var cipher = try KeyWrapCipher(keyByteCount: key.count)
    var wrapped = [UInt8](repeating: 0, count: plain.count + 8)
    var bytes = wrapped.mutableSpan
    try cipher.wrap(key: key, plain: plain, into: &bytes)
    return wrapped
  }

  /// Unwraps what ``wrap(key:plain:)`` made; throws when the integrity value is wrong.
  public static func unwrap(key: Span<UInt8>, wrapped: Span<UInt8>) throws(CryptographyFailure) -> SecretBytes {
    guard wrapped.count >= 24 else { throw CryptographyFailure() }
    var cipher = try KeyWrapCipher(keyByteCount: key.count)
    var plain = SecretBytes(zeros: wrapped.count - 8)
    var bytes = plain.mutableBytes
    try cipher.unwrap(key: key, wrapped: wrapped, into: &bytes)
    return plain
  }
}
