import CBearSSL
import HoldfastCore

/// A random source: BearSSL's generator of AES in counter mode, seeded once at each start.
///
/// The seed is HMAC-SHA-256, under a secret of the device, of the number of the start and the entropy. So two starts give
/// different bytes even without entropy, as long as the number is durable. The bytes are unpredictable as long as the secret
/// is.
///
/// 32 bytes cost 5,600 instructions, where HMAC_DRBG hashes ten blocks, some 25,000. HMAC_DRBG cannot be run backwards, but
/// that would protect little here: the secrets that these bytes helped to agree on are in the same memory.
@safe
public struct SeededRandom: ~Copyable, RandomSource {
  private var generator = unsafe br_aesctr_drbg_context()

  /// Seeds the generator.
  ///
  /// - Parameters:
  ///   - entropy: the entropy of the board; zeros if there is none.
  ///   - deviceSecret: a secret derived from the device's key.
  ///   - bootCount: the number of this start of the device, which is durable and never repeats.
  public init(entropy: borrowing Secret<64>, deviceSecret: borrowing Secret<32>, bootCount: UInt64)
    throws(CryptographyFailure)
  {
    var cryptography = BearSSLCryptography()
    var mac = deviceSecret.withBytes { key in cryptography.hmacSHA256(key: key) }
    mac.append(domain: "holdfast/1 random")
    mac.append(bigEndian: bootCount)
    entropy.withBytes { mac.append($0) }
    let seed = try mac.finishSecret()
    unsafe seed.lend { start in unsafe holdfast_random_init(&generator, start, 32) }
  }

  /// Fills `bytes` with random bytes. It never fails.
  public mutating func fill(_ bytes: inout MutableSpan<UInt8>) {
    unsafe bytes.lend { start, count in unsafe br_aesctr_drbg_generate(&generator, start, count) }
  }
}

/// A device's P-256 private key in memory. A secure element would not release it.
public struct SoftwareAgreementKey: ~Copyable, AgreementKey {
  /// The public point of the key.
  public let publicPoint: P256Point
  private let scalar: Secret<32>

  /// Makes the key with this scalar, 32 bytes, big-endian.
  ///
  /// - Throws: `CryptographyFailure` if the scalar is 0 or not below the order.
  public init(scalar: consuming Secret<32>) throws(CryptographyFailure) {
    var cryptography = BearSSLCryptography()
    publicPoint = try cryptography.p256PublicPoint(scalar: scalar)
    self.scalar = scalar
  }

  /// Computes the shared secret with `peer`, the x coordinate of 32 bytes, big-endian.
  ///
  /// - Throws: `CryptographyFailure` if `peer` is not a valid point.
  public mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    var cryptography = BearSSLCryptography()
    try cryptography.p256Agree(scalar: scalar, peer: peer, into: &shared)
  }
}
