/// Every cryptographic operation that Holdfast needs, supplied from outside: libcrypto on Linux, BearSSL on a
/// microcontroller.
///
/// An implementation is used by one thread at a time. Failures are one opaque case, whether bytes were forged or the
/// library failed.
public protocol Cryptography: ~Copyable {
  associatedtype SHA1: StreamingDigest
  associatedtype SHA256: StreamingDigest
  associatedtype SHA512: StreamingDigest
  associatedtype HMACSHA1: StreamingDigest
  associatedtype HMACSHA256: StreamingDigest
  associatedtype HMACSHA512: StreamingDigest

  /// Begins a SHA-1 hash, of 20 bytes: for OATH alone. Source: FIPS 180-4.
  mutating func sha1() throws(CryptographyFailure) -> SHA1

  /// Begins a SHA-256 hash, of 32 bytes. Source: FIPS 180-4.
  mutating func sha256() throws(CryptographyFailure) -> SHA256

  /// Begins a SHA-512 hash, of 64 bytes. Source: FIPS 180-4.
  mutating func sha512() throws(CryptographyFailure) -> SHA512

  /// Begins an HMAC-SHA-1 under `key`, any number of bytes: for OATH alone. Source: RFC 2104.
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
    message: inout MutableSpan<UInt8>, tag: inout FixedBytes<16>
  ) throws(CryptographyFailure)

  /// Decrypts `message` in place with AES-256-GCM. `nonce` is 12 bytes. On a wrong tag it throws, and what `message` then
  /// holds must not be used. Source: SP 800-38D §7.2.
  mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: FixedBytes<16>
  ) throws(CryptographyFailure)

  /// Unwraps a 256-bit key from the 40 bytes of `wrapped`. Source: RFC 3394 §2.2.2.
  mutating func aes256KeyUnwrap(
    wrappingKey: borrowing Secret<32>, wrapped: Span<UInt8>, into key: inout Secret<32>
  ) throws(CryptographyFailure)

  /// The public point of a private key that was just drawn. Throws where `scalar` is 0 or not below the order, which one of
  /// 2^32 random ones is. Source: FIPS 186-5 §A.2.2.
  mutating func p256PublicPoint(scalar: borrowing Secret<32>) throws(CryptographyFailure) -> P256Point

  /// ECDH: the x coordinate of `scalar` times `peer`, 32 bytes. Throws for a point that is not on the curve.
  /// Source: SP 800-56A §5.7.1.2.
  mutating func p256Agree(
    scalar: borrowing Secret<32>, peer: P256Point, into shared: inout Secret<32>
  ) throws(CryptographyFailure)

  /// Checks an ECDSA P-256 signature, r ‖ s of 64 bytes, over a SHA-256 digest. Throws when it is wrong. Source: FIPS 186-5 §6.4.2.
  mutating func p256Verify(
    key: P256Point, digest: Digest, signature: FixedBytes<64>
  ) throws(CryptographyFailure)
}

/// A device's P-256 private key, or a handle on one that never leaves its hardware.
public protocol AgreementKey: ~Copyable {
  /// The public half.
  var publicPoint: P256Point { get }

  /// ECDH: the x coordinate of this key times `peer`, 32 bytes. Throws for a point that is not on the curve.
  /// Source: SP 800-56A §5.7.1.2.
  mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure)
}

/// A hash or a MAC that takes its input piece by piece.
public protocol StreamingDigest: ByteSink where Failure == Never {
  /// Ends it and writes the result over `output`; used once.
  ///
  /// `output` is exactly as long as the result: 20 bytes for SHA-1, 32 for SHA-256, 64 for SHA-512. Throws when it is not.
  mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure)
}

extension StreamingDigest {
  /// Ends a SHA-256 or an HMAC of it; the result is public.
  public mutating func finish() throws(CryptographyFailure) -> Digest {
    var digest = Digest()
    var bytes = digest.mutableBytes
    try finish(into: &bytes)
    return digest
  }

  /// Ends a SHA-256 or an HMAC of it; the result is a secret.
  public mutating func finishSecret() throws(CryptographyFailure) -> Secret<32> {
    var secret = Secret<32>()
    try secret.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try self.finish(into: &bytes)
    }
    return secret
  }
}

/// A cryptographic operation failed: opaque on purpose.
public struct CryptographyFailure: Error {
  public init() {}
}

/// Unpredictable bytes, supplied from outside.
public protocol RandomSource: ~Copyable {
  /// Writes fresh random bytes over all of `bytes`; throws when there are none to be had, and `bytes` is then not to be used.
  mutating func fill(_ bytes: inout MutableSpan<UInt8>) throws(RandomFailure)
}

/// There was no randomness: nothing may go on without it.
public struct RandomFailure: Error {
  public init() {}
}

extension RandomSource where Self: ~Copyable {
  /// `count` fresh random bytes that are public: a challenge, an identifier, a nonce.
  public mutating func fixedBytes<let count: Int>() throws(RandomFailure) -> FixedBytes<count> {
    var fresh = FixedBytes<count>()
    var bytes = fresh.mutableBytes
    try fill(&bytes)
    return fresh
  }

  /// `count` fresh random bytes that are secret: a key.
  public mutating func secret<let count: Int>() throws(RandomFailure) -> Secret<count> {
    var fresh = Secret<count>()
    try fresh.withMutableBytes { (bytes: inout MutableSpan<UInt8>) throws(RandomFailure) in
      try self.fill(&bytes)
    }
    return fresh
  }
}

/// AES-256-GCM over a buffer, with the 16-byte tag behind the ciphertext as every message and token has it.
///
/// Source: RFC 5116 §5.1.
extension ByteBuffer {
  /// Encrypts what is held and takes the tag at the end. `nonce` is 12 bytes.
  package mutating func seal<Crypto: Cryptography & ~Copyable>(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    var tag = FixedBytes<16>()
    var message = mutableBytes
    try cryptography.aes256GCMSeal(key: key, nonce: nonce, authenticating: data, message: &message, tag: &tag)
    do throws(EncodingFault) { try append(tag.bytes) } catch { throw CryptographyFailure() }
  }

  /// Decrypts what is held, whose last 16 bytes are the tag, and drops the tag. Holds nothing when it throws.
  package mutating func open<Crypto: Cryptography & ~Copyable>(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    guard count >= 16, let tag = FixedBytes<16>(bytes.extracting(last: 16)) else { throw CryptographyFailure() }
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
