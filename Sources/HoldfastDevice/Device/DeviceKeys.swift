import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The source of a device's private key: the folder's file, or hardware that never reveals it.
public protocol DeviceKeys: Sendable {
  /// The key, or a handle to it. Each session has one of its own.
  associatedtype Key: AgreementKey, ~Copyable

  /// The public half of the key, an uncompressed point of 65 bytes.
  var publicPoint: P256Point { get }

  /// Makes a key, or a handle to it, for use by one thread at a time.
  func key() throws(CryptographyFailure) -> Key

  /// Returns 32 secret bytes from which challenges are derived, together with fresh random bytes: challenges differ even if the
  /// random source fails. By default, they are fresh random bytes for each session.
  func challengeSeed() throws(CryptographyFailure) -> Secret<32>
}

extension DeviceKeys {
  /// Computes ECDH of the key and a point: the x coordinate, 32 bytes.
  package func agree(with peer: P256Point) throws(CryptographyFailure) -> Secret<32> {
    var key = try key()
    var shared = Secret<32>()
    try key.agree(with: peer, into: &shared)
    return shared
  }

  /// Returns fresh random bytes.
  public func challengeSeed() throws(CryptographyFailure) -> Secret<32> {
    var random = SystemRandom()
    do throws(RandomFailure) { return try random.secret() } catch { throw CryptographyFailure() }
  }
}
