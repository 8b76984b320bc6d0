import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport

import HoldfastDevice

/// The home of a device's audit log, which the device trusts.
final class TestHome {
  private var agreement: P256PrivateKey
  private let device: TestDevice
  var id: DeviceID { device.folder.descriptor.deviceID }

  /// Makes the issuer of `device` its home.
  init(of device: TestDevice, bound: UInt64? = nil, refusesWhenFull: Bool = false) throws {
    self.device = device
    agreement = try P256PrivateKey()
    try device.ledger.setAgreementKey(agreement.publicPoint, of: try device.issuer.keyID())
    device.policy.auditRules.home = try device.issuer.keyID()
    device.policy.auditRules.bound = bound
    device.policy.auditRules.refusesWhenFull = refusesWhenFull
    device.ledger.auditRules = device.policy.auditRules
  }

  /// Opens a page.
  func open(_ sealed: [UInt8]) throws -> AuditPage {
    var shared = Secret<32>()
    try agreement.agree(with: device.folder.descriptor.publicKey.point, into: &shared)
    let secret = AuditPageSecret(shared, device: id, home: try device.issuer.keyID())
    var cryptography = OpenSSLCryptography()
    return try secret.open(sealed.span, using: &cryptography)
  }

  /// A receipt for the entries up to `chain`.
  func receipt(_ chain: AuditChain, for device: DeviceID? = nil, by issuer: TestIssuer? = nil) throws -> [UInt8] {
    try (issuer ?? self.device.issuer).receipt(AuditReceipt.claims(device ?? id, chain))
  }

  /// A receipt for the entries up to a number, as the ledger has them.
  func receipt(upTo count: UInt64) throws -> [UInt8] { try receipt(try chain(count)) }

  func chain(_ count: UInt64) throws -> AuditChain {
    let chain = try device.ledger.look { (tables) throws(DatabaseError) -> AuditChain? in
      try tables.auditChain(at: count, state: try tables.state())
    }
    return chain ?? AuditChain()
  }
}
