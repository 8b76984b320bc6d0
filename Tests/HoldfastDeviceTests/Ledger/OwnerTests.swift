import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastDevice

@Suite struct OwnerTests {
  @Test func `trusting twice is as good as once`() throws {
    let device = try TestDevice()
    let issuer = IssuerKey.signing(try TestIssuer().point)
    #expect(try device.ledger.trust(issuer, realClock: testTime))
    #expect(try !device.ledger.trust(issuer, realClock: testTime))
    #expect(try device.ledger.issuers().count == 2)
  }

  @Test func `another key of the same id is not trusted in an issuer's place`() throws {
    let device = try TestDevice()
    let other = try TestIssuer().point
    try device.tamper("UPDATE issuers SET key = ?", .copying(other.bytes))
    #expect(throws: LedgerFault.keyIDTaken) {
      try device.ledger.trust(.signing(device.issuer.point), realClock: testTime)
    }
    let keyID = try device.issuer.keyID()
    let kept = try device.ledger.read { (tables) throws(DatabaseError) in
      try tables.issuer(keyID)?.isSame(as: .signing(other))
    }
    #expect(kept == true)
  }

  @Test func `there are at most so many issuers`() throws {
    let device = try TestDevice(limits: LedgerLimits(issuerCount: 2))
    let second = IssuerKey.signing(try TestIssuer().point)
    try device.ledger.trust(second, realClock: testTime)
    #expect(throws: LedgerFault.tooManyIssuers) {
      try device.ledger.trust(.signing(try TestIssuer().point), realClock: testTime)
    }
    #expect(try !device.ledger.trust(second, realClock: testTime))
    #expect(try device.ledger.removeTrust(device.issuer.keyID(), realClock: testTime))
    #expect(try device.ledger.trust(.signing(try TestIssuer().point), realClock: testTime))
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

  @Test func `a floor goes where the owner puts it, no further than integers go, and a move to where it is is none`()
    throws
  {
    let device = try TestDevice()
    let keyID = try device.issuer.keyID()
    let before = try device.ledger.summary()
    for floor in [maximumInteger + 1, .max] {
      #expect(throws: LedgerFault.floorOutOfRange) { try device.ledger.moveClockFloor(to: floor, realClock: nil) }
      #expect(throws: LedgerFault.floorOutOfRange) {
        try device.ledger.moveGenerationFloor(of: keyID, to: floor, realClock: nil)
      }
    }
    #expect(throws: LedgerFault.unknownIssuer) {
      try device.ledger.moveGenerationFloor(of: KeyID(filledWith: 1), to: 5, realClock: nil)
    }
    #expect(try device.ledger.moveClockFloor(to: testTime, realClock: nil) == testTime)
    #expect(try device.ledger.moveGenerationFloor(of: keyID, to: 0, realClock: nil) == 0)
    #expect(try device.ledger.summary() == before)
    for (from, to) in [(testTime, maximumInteger), (maximumInteger, 0)] {
      #expect(try device.ledger.moveClockFloor(to: to, realClock: nil) == from)
      #expect(try device.ledger.summary().clockFloor == to)
    }
    for (from, to) in [(UInt64(0), maximumInteger), (maximumInteger, 3)] {
      #expect(try device.ledger.moveGenerationFloor(of: keyID, to: to, realClock: nil) == from)
      #expect(try device.ledger.issuers().map(\.generationFloor) == [to])
    }
    let events = try device.ledger.auditEntries(after: before.audit.count, limit: 10).map(\.event)
    #expect(
      events == [
        .clockFloorMoved(from: testTime, to: maximumInteger), .clockFloorMoved(from: maximumInteger, to: 0),
        .generationFloorMoved(keyID, from: 0, to: maximumInteger),
        .generationFloorMoved(keyID, from: maximumInteger, to: 3),
      ])
  }

  @Test func `a generation floor that the owner raised or lowered counts in the next round`() throws {
    let device = try TestDevice()
    let keyID = try device.issuer.keyID()
    let (connection, prover) = (try device.connect(), try device.prover { $0.generation = 4 })
    for (floor, status) in [(UInt64(5), Status.tokenRevoked), (4, .accepted), (5, .tokenRevoked), (0, .accepted)] {
      try device.ledger.moveGenerationFloor(of: keyID, to: floor, realClock: testTime)
      #expect(try connection.round(prover).status == status)
    }
  }

  @Test func `a clock floor that the owner lowered brings expired tokens back, and no use and no nonce`() throws {
    let rule = CommandRule(factors: [.integrity, .device], allowsCompatibility: true)
    let device = try TestDevice(policy: DevicePolicy(commands: [BoundedText("unlock"): rule]))
    device.clock.seconds = nil
    let expires = testTime + 1000
    func prover(_ id: UInt8, _ maximumUses: UInt64?) throws -> TestProver {
      try device.prover { ($0.tokenID, $0.expires, $0.maximumUses) = (TokenID(filledWith: id), expires, maximumUses) }
    }
    let (once, untouched, unlimited) = (try prover(1, 1), try prover(2, 1), try prover(3, nil))
    let nonce = [UInt8](repeating: 7, count: 16)
    let connection = try device.connect()
    #expect(try connection.round(once).status == .accepted)
    #expect(try connection.compatibilityRound(unlimited, nonce: nonce) == .accepted)
    try device.ledger.moveClockFloor(to: expires, realClock: nil)
    #expect(try connection.round(unlimited).status == .tokenExpired)
    let lasting = try device.prover { ($0.tokenID, $0.expires) = (TokenID(filledWith: 5), expires + 1000) }
    #expect(try connection.round(lasting).status == .accepted)
    #expect(try device.ledger.summary().keptCount == 0)
    try device.ledger.moveClockFloor(to: testTime, realClock: nil)
    #expect(try connection.round(unlimited).status == .accepted)
    #expect(try connection.round(once).status == .usesExhausted)
    #expect(try connection.round(untouched).status == .usesExhausted)
    #expect(try connection.compatibilityRound(unlimited, nonce: nonce) == .deviceMismatch)
    let later = try device.prover {
      ($0.tokenID, $0.expires, $0.maximumUses) = (TokenID(filledWith: 4), expires + 1, 1)
    }
    #expect(try connection.round(later).status == .accepted)
    #expect(try connection.round(later).status == .usesExhausted)
  }

  @Test func `a lowered clock floor leaves the counts that are still kept`() throws {
    let device = try TestDevice()
    device.clock.seconds = nil
    let prover = try device.prover { ($0.expires, $0.maximumUses) = (testTime + 1000, 2) }
    let connection = try device.connect()
    #expect(try connection.round(prover).status == .accepted)
    try device.ledger.moveClockFloor(to: testTime + 2000, realClock: nil)
    try device.ledger.moveClockFloor(to: testTime, realClock: nil)
    #expect(try connection.round(prover).status == .accepted)
    #expect(try connection.round(prover).status == .usesExhausted)
  }

  @Test func `a generation floor outlives the trust`() throws {
    let device = try TestDevice()
    #expect(try device.connect().round(try device.prover { $0.generation = 9 }).status == .accepted)
    let keyID = try device.issuer.keyID()
    try device.ledger.removeTrust(keyID, realClock: testTime)
    #expect(try device.ledger.moveGenerationFloor(of: keyID, to: 8, realClock: testTime) == 9)
    try device.ledger.trust(.signing(device.issuer.point), realClock: testTime)
    #expect(try device.connect().round(try device.prover()).status == .tokenRevoked)
    #expect(try device.connect().round(try device.prover { $0.generation = 8 }).status == .accepted)
  }

  @Test func `another process may write while this one serves`() throws {
    let device = try TestDevice()
    let elsewhere = try device.folder.openLedger()
    let connection = try device.connect()
    for _ in 0..<5 {
      #expect(try connection.round(try device.prover()).status == .accepted)
      try elsewhere.trust(.signing(try TestIssuer().point), realClock: testTime)
    }
    #expect(try device.ledger.verifyAudit() == elsewhere.verifyAudit())
    #expect(try elsewhere.verifyAudit().firstBroken == nil)
    #expect(try device.ledger.issuers().count == 6)
  }
}
