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
    challengeSeed = try Self.derive("holdfast/1 challenge seed", from: scalar)
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
    try Self.derive("holdfast/1 counter authorization", from: scalar)
  }

  /// `HKDF-SHA-256(ikm: scalar, no salt, info: label, 32 bytes)`.
  ///
  /// Made of the key, so that there is no second secret that could be lost, or be another device's.
  private static func derive(
    _ label: String, from scalar: borrowing Secret<32>
  ) throws(CryptographyFailure) -> Secret<32> {
    let info = Array(label.utf8)
    var cryptography = OpenSSLCryptography()
    var seed = Secret<32>()
    try seed.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try scalar.withBytes { (inputKey: Span<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: inputKey, salt: Span(), info: info.span, into: &output)
      }
    }
    return seed
  }
}
