import HoldfastCore
import HoldfastOpenSSL

/// A device's secrets, kept in one place for as long as it is served.
final class DeviceSecrets: Sendable {
  let publicPoint: P256Point
  private let scalar: Secret<32>
  private let challengeSeed: Secret<32>

  /// Throws unless `scalar` is a private key's.
  init(scalar: consuming Secret<32>, challengeSeed: consuming Secret<32>) throws(CryptographyFailure) {
    publicPoint = try P256PrivateKey(scalar: scalar).publicPoint
    self.scalar = scalar
    self.challengeSeed = challengeSeed
  }

  /// A key object for one thread.
  func key() throws(CryptographyFailure) -> P256PrivateKey {
    try P256PrivateKey(scalar: scalar)
  }

  /// The challenges of one connection.
  func challenges(bootCount: UInt64, connection: UInt64) -> ChallengeSource {
    ChallengeSource(seed: challengeSeed.copy(), bootCount: bootCount, connection: connection)
  }
}
