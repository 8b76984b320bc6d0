import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import Synchronization

/// The service's key for agreement with devices, apart from the keys that sign. Any number of threads may use it.
final class AgreementKeyPair: Sendable {
  /// The public half, which devices learn together with the issuer's keys.
  let publicPoint: P256Point
  private let key: Mutex<P256PrivateKey>

  /// Takes over a scalar of 32 bytes.
  ///
  /// - Throws: `wrongServiceKey` if it is none.
  init(_ scalar: borrowing SecretBytes) throws(FleetFault) {
    guard let scalar = Secret<32>(copying: scalar.bytes) else { throw .wrongServiceKey }
    do throws(CryptographyFailure) {
      let key = try P256PrivateKey(scalar: scalar)
      publicPoint = key.publicPoint
      self.key = Mutex(key)
    } catch { throw .wrongServiceKey }
  }

  /// Computes the secret that a home of audit logs shares with a device.
  func secret(
    of home: AuditHome, with device: DeviceID, _ point: P256Point
  ) throws(CryptographyFailure) -> AuditPageSecret {
    try key.withLock { (key) throws(CryptographyFailure) in
      try home.secret(with: device, point, agreement: &key)
    }
  }
}

/// The secrets that the service shares with devices, each computed once and kept. Any number of threads may use them.
final class PageSecrets: Sendable {
  /// A secret, which several threads may use at once.
  final class Shared: Sendable {
    private let secret: AuditPageSecret

    init(_ secret: consuming AuditPageSecret) { self.secret = secret }

    /// Opens a page; nil if another device made it, if it is for another home, or if it was changed.
    func open(_ sealed: [UInt8]) -> AuditPage? {
      var cryptography = OpenSSLCryptography()
      return try? secret.open(sealed.span, using: &cryptography)
    }
  }

  private struct Name: Hashable {
    let device: [UInt8]
    let point: [UInt8]
    let home: [UInt8]
  }

  /// The number of secrets that are kept. One beyond it replaces all.
  private static let limit = 4096
  private let known = Mutex<[Name: Shared]>([:])

  /// Returns the secret of a device and an issuer key as the home of its log.
  ///
  /// - Parameters:
  ///   - issuer: The public half of the key that signs receipts.
  ///   - device: The id of the device.
  ///   - point: The public key of the device.
  ///   - agreement: The service's key for agreement.
  func secret(
    of issuer: P256Point, with device: DeviceID, _ point: P256Point, _ agreement: AgreementKeyPair
  ) throws(CryptographyFailure) -> Shared {
    let name = Name(device: Self.array(device.bytes), point: Self.array(point.bytes), home: Self.array(issuer.bytes))
    if let secret = known.withLock({ $0[name] }) { return secret }
    let secret = Shared(try agreement.secret(of: AuditHome(of: issuer), with: device, point))
    known.withLock {
      if $0.count >= Self.limit { $0.removeAll() }
      $0[name] = secret
    }
    return secret
  }

  private static func array(_ bytes: Span<UInt8>) -> [UInt8] {
    var array: [UInt8] = []
    array.append(bytes)
    return array
  }
}
