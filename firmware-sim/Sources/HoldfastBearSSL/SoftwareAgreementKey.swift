import HoldfastCore

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
