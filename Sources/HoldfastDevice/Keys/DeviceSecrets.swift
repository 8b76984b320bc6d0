import HoldfastCore
import HoldfastOpenSSL

/// A device's secrets, kept in one place for as long as it is served.
final class DeviceSecrets: Sendable {
  let publicPoint: P256Point
  private let scalar: Secret<32>
  private let challengeSeed: Secret<32>

  /// Throws unless `scalar` is a private key's.
  init(scalar: consuming Secret<32>) throws(CryptographyFailure) {
    publicPoint = try P256PrivateKey(scalar: scalar).publicPoint
    var cryptography = OpenSSLCryptography()
    challengeSeed = try ChallengeSource.seed(from: scalar, using: &cryptography)
    self.scalar = scalar
  }

  /// A key object for one thread.
  func key() throws(CryptographyFailure) -> P256PrivateKey {
    try P256PrivateKey(scalar: scalar)
  }

  /// The challenges of one connection.
  func challenges(bootCount: UInt64, connection: UInt64) -> ChallengeSource {
    ChallengeSource(seed: challengeSeed.copy(), bootCount: bootCount, connection: connection)
  }

  /// What authorizes the use of the counter that anchors the device.
  func counterAuthorization() throws(CryptographyFailure) -> Secret<32> {
    var cryptography = OpenSSLCryptography()
    return try derivedSecret("holdfast/1 counter authorization", from: scalar, using: &cryptography)
  }
}
