/// The cryptographic operations that Holdfast needs, supplied from outside: libcrypto on Linux, BearSSL on a
/// microcontroller.
///
/// Only one thread at a time uses an implementation. All failures are one opaque case, whether bytes were forged or the
/// library failed.
public protocol Cryptography: ~Copyable {
  /// A SHA-1 hash in progress.
  associatedtype SHA1: StreamingDigest
  /// A SHA-256 hash in progress.
  associatedtype SHA256: StreamingDigest
  /// A SHA-512 hash in progress.
  associatedtype SHA512: StreamingDigest
  /// An HMAC-SHA-1 in progress.
  associatedtype HMACSHA1: StreamingDigest
  /// An HMAC-SHA-256 in progress.
  associatedtype HMACSHA256: StreamingDigest
  /// An HMAC-SHA-512 in progress.
  associatedtype HMACSHA512: StreamingDigest

  /// Begins a SHA-1 hash, of 20 bytes, for OATH only. Source: FIPS 180-4.
  mutating func sha1() throws(CryptographyFailure) -> SHA1

  /// Begins a SHA-256 hash, of 32 bytes. Source: FIPS 180-4.
  mutating func sha256() throws(CryptographyFailure) -> SHA256

  /// Begins a SHA-512 hash, of 64 bytes. Source: FIPS 180-4.
  mutating func sha512() throws(CryptographyFailure) -> SHA512

  /// Begins an HMAC-SHA-1 under `key`, any number of bytes, for OATH only. Source: RFC 2104.
  mutating func hmacSHA1(key: Span<UInt8>) throws(CryptographyFailure) -> HMACSHA1

  /// Begins an HMAC-SHA-256 under `key`, any number of bytes. Source: RFC 2104.
  mutating func hmacSHA256(key: Span<UInt8>) throws(CryptographyFailure) -> HMACSHA256

  /// Begins an HMAC-SHA-512 under `key`, any number of bytes. Source: RFC 2104.
  mutating func hmacSHA512(key: Span<UInt8>) throws(CryptographyFailure) -> HMACSHA512

  /// Derives `output.count` bytes with HKDF-SHA-256, extract and expand. Source: RFC 5869 §2.
  mutating func hkdfSHA256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure)

  /// Encrypts `message` in place with AES-256-GCM and writes the 16-byte tag. `nonce` is 12 bytes. Source: SP 800-38D §7.1.
  mutating func aes256GCMSeal(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout AuthenticationTag
  ) throws(CryptographyFailure)

  /// Decrypts `message` in place with AES-256-GCM. `nonce` is 12 bytes. It throws on a wrong tag, and the contents of
  /// `message` must then not be used. Source: SP 800-38D §7.2.
  mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure)

  /// Unwraps a 256-bit key from the 40 bytes of `wrapped`. Source: RFC 3394 §2.2.2.
  mutating func aes256KeyUnwrap(
    wrappingKey: borrowing Secret<32>, wrapped: Span<UInt8>, into key: inout Secret<32>
  ) throws(CryptographyFailure)

  /// Returns the public point of a private key that was just drawn. Throws if `scalar` is 0 or not below the order, as
  /// one of 2^32 random scalars is. Source: FIPS 186-5 §A.2.2.
  mutating func p256PublicPoint(scalar: borrowing Secret<32>) throws(CryptographyFailure) -> P256Point

  /// Computes ECDH: the x coordinate of `scalar` times `peer`, 32 bytes. Throws for a point that is not on the curve.
  /// Source: SP 800-56A §5.7.1.2.
  mutating func p256Agree(
    scalar: borrowing Secret<32>, peer: P256Point, into shared: inout Secret<32>
  ) throws(CryptographyFailure)

  /// Checks an ECDSA P-256 signature, r ‖ s of 64 bytes, over a SHA-256 digest. Throws if it is wrong.
  /// Source: FIPS 186-5 §6.4.2.
  mutating func p256Verify(
    key: P256Point, digest: Digest, signature: FixedBytes<64>
  ) throws(CryptographyFailure)
}

/// A device's P-256 private key, or a handle to one that never leaves its hardware.
public protocol AgreementKey: ~Copyable {
  /// The public half of the key, an uncompressed point of 65 bytes.
  var publicPoint: P256Point { get }

  /// Computes ECDH: the x coordinate of this key times `peer`, 32 bytes. Throws for a point that is not on the curve.
  /// Source: SP 800-56A §5.7.1.2.
  mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure)
}

/// A hash or a MAC that takes its input piece by piece. A copy continues by itself: it and the original can take different input from
/// there on.
public protocol StreamingDigest: ByteSink where Failure == Never {
  /// Ends the computation and writes the result over `output`. Call it only once.
  ///
  /// `output` must be exactly as long as the result: 20 bytes for SHA-1, 32 for SHA-256, 64 for SHA-512. Throws if it
  /// is not.
  mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure)
}

extension StreamingDigest {
  /// Ends a SHA-256 hash or its HMAC, and returns the result as public bytes, such as a ``Digest`` or a ``MAC``.
  @inlinable
  public mutating func finish<Kind>() throws(CryptographyFailure) -> TypedBytes<Kind, 32> {
    var result = TypedBytes<Kind, 32>()
    var bytes = result.mutableBytes
    try finish(into: &bytes)
    return result
  }

  /// Ends a SHA-256 hash or its HMAC, and returns the result as a secret.
  public mutating func finishSecret() throws(CryptographyFailure) -> Secret<32> {
    var secret = Secret<32>()
    try secret.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try self.finish(into: &bytes)
    }
    return secret
  }
}

/// The failure of a cryptographic operation, opaque on purpose.
public struct CryptographyFailure: Error {
  /// Creates the failure.
  public init() {}
}

/// A source of unpredictable bytes, supplied from outside.
public protocol RandomSource: ~Copyable {
  /// Writes fresh random bytes over all of `bytes`. Throws if there are none, and `bytes` must then not be used.
  mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure)
}

/// The failure of a random source. Nothing may continue without randomness.
public struct RandomFailure: Error {
  /// Creates the failure.
  public init() {}
}

extension RandomSource where Self: ~Copyable {
  /// Returns `count` fresh random bytes that are public, for a challenge, an identifier or a nonce.
  public mutating func fixedBytes<Kind, let count: Int>() throws(RandomFailure) -> TypedBytes<Kind, count> {
    var fresh = TypedBytes<Kind, count>()
    var bytes = fresh.mutableBytes
    try fill(&bytes)
    return fresh
  }

  /// Returns `count` fresh random bytes that are secret, for a key.
  public mutating func secret<let count: Int>() throws(RandomFailure) -> Secret<count> {
    var fresh = Secret<count>()
    try fresh.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(RandomFailure) in
      try self.fill(&bytes)
    }
    return fresh
  }
}

/// AES-256-GCM over a buffer, with the 16-byte tag after the ciphertext, as in every message and token.
///
/// Source: RFC 5116 §5.1.
extension ByteBuffer {
  /// Encrypts the bytes in the buffer and appends the tag. `nonce` is 12 bytes.
  package mutating func seal<Crypto: Cryptography & ~Copyable>(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    var tag = AuthenticationTag()
    var message = mutableBytes
    try cryptography.aes256GCMSeal(key: key, nonce: nonce, authenticating: data, message: &message, tag: &tag)
    do throws(EncodingFault) { try append(tag.bytes) } catch { throw CryptographyFailure() }
  }

  /// Decrypts the bytes in the buffer, the last 16 of which are the tag, and drops the tag. `nonce` is 12 bytes. If the
  /// decryption fails, the buffer is empty afterwards. If the buffer has fewer than 16 bytes, this throws and changes
  /// nothing.
  package mutating func open<Crypto: Cryptography & ~Copyable>(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    guard count >= 16, let tag = AuthenticationTag(bytes.extracting(last: 16)) else { throw CryptographyFailure() }
    truncate(to: count - 16)
    do throws(CryptographyFailure) {
      var message = mutableBytes
      try cryptography.aes256GCMOpen(key: key, nonce: nonce, authenticating: data, message: &message, tag: tag)
    } catch {
      removeAll()
      throw error
    }
  }
}
