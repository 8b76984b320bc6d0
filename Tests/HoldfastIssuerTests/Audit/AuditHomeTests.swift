import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

/// A service in a folder as the home of a device's audit log.
@Suite struct AuditHomeTests {
  private let device = DeviceID(filledWith: 1)
  private let place: TemporaryFolder
  private let folder: ServiceFolder
  private let log: DeviceLog

  init() throws {
    let parties = try Parties()
    let keys = parties.releaseKeys
    place = try TemporaryFolder()
    folder = try ServiceFolder.create(at: place.file("service"), releaseKeys: keys.span, policy: parties.policy)
    log = try DeviceLog(20)
  }

  /// Registers the device with a new key, and returns the secret that it shares with its home.
  private func registered() throws -> AuditPageSecret {
    var key = try P256PrivateKey()
    var records = try folder.issuedBaselines()
    _ = try records.register(
      DeviceDescriptor(deviceID: device, publicPoint: key.publicPoint), label: nil, now: testTime)
    let home = try AuditHome(of: folder.issuerKey().point).keyID
    var shared = Secret<32>()
    try key.agree(with: try #require(try folder.agreementKey()).point, into: &shared)
    return AuditPageSecret(shared, device: device, home: home)
  }

  private func sealed(_ page: AuditPage, _ secret: borrowing AuditPageSecret) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    return try secret.seal(page, random: FixedBytes<16>(), using: &cryptography)
  }

  /// Checks that a receipt is signed by the issuer, for this device and this many entries.
  private func expect(_ receipt: [UInt8]?, covers count: Int) throws {
    let bytes = try #require(receipt)
    let receipt = try AuditReceipt(bytes.span)
    var cryptography = OpenSSLCryptography()
    try receipt.verify(by: folder.issuerKey().point, using: &cryptography)
    let (device, chain) = (receipt.device, receipt.chain)
    #expect(device == self.device && chain == log.chains[count])
  }

  @Test func `a receipt covers what is there without a gap, and after a fork there is none`() throws {
    let secret = try registered()
    let late = try sealed(log.page(11...20), secret)
    let early = try #require(try folder.receive(pages: [late], of: device))
    #expect(early.receipt == nil && early.refusedCount == 0 && early.log.missing == 1)
    let whole = try #require(try folder.receive(pages: [try sealed(log.page(1...10, of: 10), secret)], of: device))
    #expect(whole.log.through == log.chains[20])
    try expect(whole.receipt, covers: 20)
    let other = try DeviceLog(20, forkedFrom: 12).page(10...20)
    let forked = try #require(try folder.receive(pages: [try sealed(other, secret), late], of: device))
    #expect(forked.log.isForked && forked.refusedCount == 1 && forked.receipt == nil)
  }

  @Test func `a page that was changed, or is another device's, is refused and counted`() throws {
    let secret = try registered()
    let page = try sealed(log.page(1...10, of: 10), secret)
    var changed = page
    changed[20] ^= 1
    let other = AuditPageSecret(Secret<32>(), device: device, home: KeyID())
    let foreign = try sealed(log.page(11...20), other)
    let received = try #require(try folder.receive(pages: [changed, page, foreign], of: device))
    #expect(received.refusedCount == 2)
    try expect(received.receipt, covers: 10)
    #expect(try folder.receive(pages: [page], of: DeviceID(filledWith: 2)) == nil, "nobody has registered it")
  }
}
