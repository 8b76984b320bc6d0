import HoldfastCore

/// AES-GCM of any key size in one call: 12-byte nonces, 16-byte tags.
///
/// Source: SP 800-38D §7. ``OpenSSLCryptography`` keeps a context and is faster.
public enum AESGCM {
  /// Encrypts `message` in place under a key of 16, 24 or 32 bytes and writes its tag.
  public static func seal(
    key: Span<UInt8>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout FixedBytes<16>
  ) throws(CryptographyFailure) {
    var cipher = try GCMCipher(keyByteCount: key.count)
    try cipher.seal(key: key, nonce: nonce, authenticating: data, message: &message, tag: &tag)
  }

  /// Decrypts `message` in place; throws when `tag` is wrong, and `message` is then wiped.
  ///
  /// Timing: libcrypto compares the tag in constant time.
  public static func open(
    key: Span<UInt8>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: FixedBytes<16>
  ) throws(CryptographyFailure) {
    var cipher = try GCMCipher(keyByteCount: key.count)
    try cipher.open(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
  }
}
