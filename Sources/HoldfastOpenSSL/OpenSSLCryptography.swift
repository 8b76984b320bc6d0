import COpenSSL
import HoldfastCore

/// Holdfast's cryptography, implemented with libcrypto. A context is created at its first use and kept.
///
/// Only one thread at a time may use it.
public struct OpenSSLCryptography: ~Copyable, Cryptography, Sendable {
  private var gcm: GCMCipher?
  private var keyWrap: KeyWrapCipher?
  private var verifier: SignatureVerifier?

  /// Creates an instance without any context yet.
  public init() {}

  /// Begins a SHA-1 hash, of 20 bytes. Source: FIPS 180-4.
  public mutating func sha1() -> SHA1Stream {
    SHA1Stream()
  }

  /// Begins a SHA-256 hash, of 32 bytes. Source: FIPS 180-4.
  public mutating func sha256() -> SHA256Stream {
    SHA256Stream()
  }

  /// Begins a SHA-512 hash, of 64 bytes. Source: FIPS 180-4.
  public mutating func sha512() -> SHA512Stream {
    SHA512Stream()
  }

  /// Begins an HMAC-SHA-1 under `key`, any number of bytes. Source: RFC 2104.
  @inlinable
  public mutating func hmacSHA1(key: Span<UInt8>) throws(CryptographyFailure) -> HMACStream<SHA1Stream> {
    try HMACStream(key: key)
  }

  /// Begins an HMAC-SHA-256 under `key`, any number of bytes. Source: RFC 2104.
  @inlinable
  public mutating func hmacSHA256(key: Span<UInt8>) throws(CryptographyFailure) -> HMACStream<SHA256Stream> {
    try HMACStream(key: key)
  }

  /// Begins an HMAC-SHA-512 under `key`, any number of bytes. Source: RFC 2104.
  @inlinable
  public mutating func hmacSHA512(key: Span<UInt8>) throws(CryptographyFailure) -> HMACStream<SHA512Stream> {
    try HMACStream(key: key)
  }

  /// Derives `output.count` bytes with HKDF-SHA-256, extract and expand. Source: RFC 5869 §2.
  public mutating func hkdfSHA256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    try HKDF.sha256(inputKey: inputKey, salt: salt, info: info, into: &output)
  }

  /// Encrypts `message` in place with AES-256-GCM and a 12-byte nonce, and writes the tag. Source: SP 800-38D §7.1.
  public mutating func aes256GCMSeal(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout AuthenticationTag
  ) throws(CryptographyFailure) {
    if gcm == nil { gcm = try GCMCipher(keyByteCount: 32) }
    try key.withBytes { (key) throws(CryptographyFailure) in
      try gcm!.seal(key: key, nonce: nonce, authenticating: data, message: &message, tag: &tag)
    }
  }

  /// Decrypts `message` in place with AES-256-GCM and a 12-byte nonce. Source: SP 800-38D §7.2.
  ///
  /// - Throws: `CryptographyFailure` if the tag is wrong; `message` is then wiped.
  public mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) {
    if gcm == nil { gcm = try GCMCipher(keyByteCount: 32) }
    try key.withBytes { (key) throws(CryptographyFailure) in
      try gcm!.open(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
    }
  }

  /// Unwraps a 32-byte key from the 40 bytes of `wrapped`. Source: RFC 3394 §2.2.2.
  ///
  /// - Throws: `CryptographyFailure` if the integrity value is wrong.
  public mutating func aes256KeyUnwrap(
    wrappingKey: borrowing Secret<32>, wrapped: Span<UInt8>, into key: inout Secret<32>
  ) throws(CryptographyFailure) {
    if keyWrap == nil { keyWrap = try KeyWrapCipher(keyByteCount: 32) }
    try wrappingKey.withBytes { (wrappingKey) throws(CryptographyFailure) in
      try key.withMutableBytes { (key: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
        try keyWrap!.unwrap(key: wrappingKey, wrapped: wrapped, into: &key)
      }
    }
  }

  /// Verifies an ECDSA P-256 signature, r ‖ s of 64 bytes, over a SHA-256 digest. Source: FIPS 186-5 §6.4.2.
  ///
  /// - Throws: `CryptographyFailure` if the signature is wrong.
  public mutating func p256Verify(
    key: P256Point, digest: Digest, signature: FixedBytes<64>
  ) throws(CryptographyFailure) {
    if verifier == nil { verifier = try SignatureVerifier() }
    try verifier!.verify(point: key, digest: digest, signature: signature)
  }
}

extension OpenSSLCryptography {
  /// Returns the public point of a private scalar, 32 bytes, big-endian.
  ///
  /// - Throws: `CryptographyFailure` unless the scalar is in 1 ..< n.
  public mutating func p256PublicPoint(scalar: borrowing Secret<32>) throws(CryptographyFailure) -> P256Point {
    try P256PrivateKey(scalar: scalar).publicPoint
  }

  /// Performs ECDH: writes the x coordinate of `scalar` times `peer`, 32 bytes. Source: SP 800-56A §5.7.1.2.
  ///
  /// - Throws: `CryptographyFailure` if `peer` is not on the curve, or the scalar is not in 1 ..< n.
  public mutating func p256Agree(
    scalar: borrowing Secret<32>, peer: P256Point, into shared: inout Secret<32>
  ) throws(CryptographyFailure) {
    var key = try P256PrivateKey(scalar: scalar)
    try key.agree(with: peer, into: &shared)
  }
}
