import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL
import Testing

@testable import HoldfastDevice

@Suite struct OwnerTests {
  @Test func `trusting twice is as good as once`() throws {
    let device = try TestDevice()
    let issuer = PublicKeyJWK(point: try TestIssuer().point)
    #expect(try device.ledger.trust(issuer, realClock: testTime))
    #expect(try !device.ledger.trust(issuer, realClock: testTime))
    #expect(try device.ledger.issuers().count == 2)
  }

  @Test func `there are at most so many issuers`() throws {
    let device = try TestDevice(limits: LedgerLimits(issuerCount: 2))
    let second = PublicKeyJWK(point: try TestIssuer().point)
    try device.ledger.trust(second, realClock: testTime)
    #expect(throws: LedgerFault.tooManyIssuers) {
      try device.ledger.trust(PublicKeyJWK(point: try TestIssuer().point), realClock: testTime)
    }
    #expect(try !device.ledger.trust(second, realClock: testTime))
    #expect(try device.ledger.removeTrust(device.issuer.keyID(), realClock: testTime))
    #expect(try device.ledger.trust(PublicKeyJWK(point: try TestIssuer().point), realClock: testTime))
  }

  @Test func `an issuer that was never trusted cannot be removed, and the log says nothing of it`() throws {
    let device = try TestDevice()
    let before = try device.ledger.summary()
    #expect(try !device.ledger.removeTrust(KeyID(filledWith: 1), realClock: testTime))
    #expect(try device.ledger.summary() == before)
  }

  @Test func `what the owner does is entered`() throws {
    let device = try TestDevice()
    let keyID = try device.issuer.keyID()
    try device.ledger.removeTrust(keyID, realClock: testTime)
    try device.ledger.moveClockFloor(to: testTime + 5, realClock: testTime)
    let events = try device.ledger.auditEntries(after: 2, limit: 10).map(\.event)
    #expect(events == [.issuerRemoved(keyID), .clockFloorMoved(from: testTime, to: testTime + 5)])
  }

  @Test func `the clock floor goes forward only, and no further than integers go`() throws {
    let device = try TestDevice()
    let before = try device.ledger.summary()
    for floor in [0, testTime - 1, testTime, maximumInteger + 1] {
      #expect(throws: LedgerFault.floorNotAhead) { try device.ledger.moveClockFloor(to: floor, realClock: nil) }
    }
    #expect(try device.ledger.summary() == before)
    try device.ledger.moveClockFloor(to: maximumInteger, realClock: nil)
    #expect(try device.ledger.summary().clockFloor == maximumInteger)
  }

  @Test func `a generation floor outlives the trust`() throws {
    let device = try TestDevice()
    #expect(try device.connect().round(try device.prover { $0.generation = 9 }).status == .accepted)
    try device.ledger.removeTrust(try device.issuer.keyID(), realClock: testTime)
    try device.ledger.trust(PublicKeyJWK(point: device.issuer.point), realClock: testTime)
    #expect(try device.connect().round(try device.prover()).status == .tokenRevoked)
  }

  @Test func `another process may write while this one serves`() throws {
    let device = try TestDevice()
    let elsewhere = try device.folder.openLedger()
    let connection = try device.connect()
    for _ in 0..<5 {
      #expect(try connection.round(try device.prover()).status == .accepted)
      try elsewhere.trust(PublicKeyJWK(point: try TestIssuer().point), realClock: testTime)
    }
    #expect(try device.ledger.verifyAudit() == elsewhere.verifyAudit())
    #expect(try elsewhere.verifyAudit().firstBroken == nil)
    #expect(try device.ledger.issuers().count == 6)
  }
}
