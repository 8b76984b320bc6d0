import CBearSSL
import HoldfastCore

/// BearSSL's generator of AES in counter mode, seeded once a start.
///
/// The seed is HMAC-SHA-256 under a secret of the device of the number of the start and of what entropy there was. So two
/// starts give different bytes even without entropy, as long as the number is durable, and unpredictable ones as long as
/// the secret is one.
///
/// 32 bytes cost 5,600 instructions, where HMAC_DRBG hashes ten blocks, some 25,000. That one cannot be run backwards, which
/// would protect little here: what these bytes helped to agree on lies in the same memory.
@safe
public struct SeededRandom: ~Copyable, RandomSource {
  private var generator = unsafe br_aesctr_drbg_context()

  /// - Parameters:
  ///   - entropy: what there is; zeros where there is none.
  ///   - deviceSecret: a secret made with the device's key.
  ///   - bootCount: counts the starts of the device, durably.
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

  public mutating func fill(_ bytes: inout MutableSpan<UInt8>) {
    unsafe bytes.lend { start, count in unsafe br_aesctr_drbg_generate(&generator, start, count) }
  }
}

/// A device's P-256 private key in memory. A secure element would keep it to itself.
public struct SoftwareAgreementKey: ~Copyable, AgreementKey {
  public let publicPoint: P256Point
  private let scalar: Secret<32>

  /// The key with this scalar, 32 bytes, big-endian. Throws where it is 0 or not below the order.
  public init(scalar: consuming Secret<32>) throws(CryptographyFailure) {
    var cryptography = BearSSLCryptography()
    publicPoint = try cryptography.p256PublicPoint(scalar: scalar)
    self.scalar = scalar
  }

  public mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    var cryptography = BearSSLCryptography()
    try cryptography.p256Agree(scalar: scalar, peer: peer, into: &shared)
  }
}
