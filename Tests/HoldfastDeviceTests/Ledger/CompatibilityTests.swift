import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import TestSupport
import Testing

@Suite struct CompatibilityTests {
  private func device(keptCount: UInt64 = 1_000_000) throws -> TestDevice {
    var policy = DevicePolicy.forSimulatedLock
    policy.commands[BoundedText("unlock")]?.allowsCompatibility = true
    return try TestDevice(policy: policy, limits: LedgerLimits(keptCount: keptCount))
  }

  private func nonce(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: 16) }

  @Test func `it is refused unless policy allows it for that command, and the nonce is used up all the same`() throws {
    let device = try device()
    let prover = try device.prover()
    let connection = try device.connect()
    #expect(try connection.compatibilityRound(prover, nonce: nonce(1), "lock") == .commandRefused)
    #expect(try connection.compatibilityRound(prover, nonce: nonce(1), "unlock") == .deviceMismatch)
    #expect(try connection.compatibilityRound(prover, nonce: nonce(2), "unlock") == .accepted)
    #expect(device.lock.current == .unlocked)
  }

  @Test func `a nonce is accepted once, also after a restart`() throws {
    let device = try device()
    let prover = try device.prover()
    #expect(try device.connect().compatibilityRound(prover, nonce: nonce(1)) == .accepted)
    #expect(try device.connect().compatibilityRound(prover, nonce: nonce(1)) == .deviceMismatch)
    try device.reopenLedger()
    #expect(try device.connect().compatibilityRound(prover, nonce: nonce(1)) == .deviceMismatch)
    #expect(try device.connect().compatibilityRound(prover, nonce: nonce(1), flaws: .wrongDevice) == .deviceMismatch)
  }

  @Test func `the same nonce and jti of another issuer are another round`() throws {
    let device = try device()
    let other = try TestIssuer()
    try device.ledger.trust(.signing(other.point), realClock: testTime)
    let connection = try device.connect()
    #expect(try connection.compatibilityRound(try device.prover(), nonce: nonce(1)) == .accepted)
    #expect(try connection.compatibilityRound(try device.prover(from: other), nonce: nonce(1)) == .accepted)
  }

  @Test func `a wrong proof uses up no nonce`() throws {
    let device = try device()
    let prover = try device.prover()
    let connection = try device.connect()
    #expect(try connection.compatibilityRound(prover, nonce: nonce(1), flaws: .wrongDevice) == .deviceMismatch)
    #expect(
      try connection.compatibilityRound(prover, nonce: nonce(1), flaws: [.wrongIntegrity, .noDevice])
        == .integrityMismatch)
    #expect(try connection.compatibilityRound(prover, nonce: nonce(1)) == .accepted)
  }

  @Test func `a token that can never count again uses up no nonce, and nothing is written`() throws {
    let device = try device(keptCount: 1024)
    let expired = try device.prover { $0.expires = testTime + 1 }
    try device.ledger.moveClockFloor(to: testTime + 1, realClock: testTime)
    let before = try device.ledger.summary()
    for byte: UInt8 in 0..<100 {
      for command in ["unlock", "lock"] {
        let status = try device.connect().compatibilityRound(expired, nonce: nonce(byte), command)
        #expect(status == .tokenExpired)
      }
    }
    #expect(try device.ledger.summary() == before)
  }

  @Test func `a nonce with its top bit set belongs to session rounds and is malformed`() throws {
    let device = try device()
    #expect(try device.connect().compatibilityRound(try device.prover(), nonce: nonce(0x80)) == .malformed)
  }

  @Test func `nonces leave half of the places to uses, whoever fills theirs`() throws {
    let device = try TestDevice(limits: LedgerLimits(keptCount: 4))
    let connection = try device.connect()
    #expect(try connection.round(try device.prover { $0.generation = 2 }).status == .accepted)
    let revoked = try device.prover { $0.generation = 1 }
    for number in 1...2 as ClosedRange<UInt8> {
      #expect(try connection.compatibilityRound(revoked, nonce: nonce(number)) == .tokenRevoked)
    }
    #expect(try connection.compatibilityRound(revoked, nonce: nonce(3)) == .busy)
    for number in 1...2 as ClosedRange<UInt8> {
      let counted = try device.prover {
        ($0.generation, $0.maximumUses, $0.tokenID) = (2, 1, TokenID(filledWith: number))
      }
      #expect(try connection.round(counted).status == .accepted)
    }
    #expect(try device.ledger.summary().keptCount == 4)
  }

  @Test func `a nonce and a use that are both new need room for two`() throws {
    let device = try device(keptCount: 3)
    let connection = try device.connect()
    func prover(_ id: UInt8) throws -> TestProver {
      try device.prover { ($0.maximumUses, $0.tokenID) = (2, TokenID(filledWith: id)) }
    }
    #expect(try connection.compatibilityRound(try prover(1), nonce: nonce(1)) == .accepted)
    #expect(try device.ledger.summary().keptCount == 2)
    #expect(try connection.compatibilityRound(try prover(2), nonce: nonce(2)) == .busy)
    #expect(try device.ledger.summary().keptCount == 2)
    #expect(try connection.compatibilityRound(try prover(1), nonce: nonce(3)) == .busy)
    #expect(try connection.round(try prover(1)).status == .accepted)
    #expect(try device.ledger.summary().keptCount == 2)
  }

  @Test func `once the store is full all are busy, until the floor has passed what is kept`() throws {
    let device = try device(keptCount: 1)
    let connection = try device.connect()
    let short = try device.prover { $0.expires = testTime + 10 }
    #expect(try connection.compatibilityRound(short, nonce: nonce(1)) == .accepted)
    #expect(try connection.compatibilityRound(short, nonce: nonce(2)) == .busy)
    #expect(try connection.round(try device.prover { $0.issuedAt = testTime + 10 }).status == .accepted)
    #expect(try connection.compatibilityRound(try device.prover(), nonce: nonce(2)) == .accepted)
  }

  @Test func `each round with right proofs has one entry in the audit log`() throws {
    let device = try device()
    let before = try device.ledger.summary().audit.count
    #expect(try device.connect().compatibilityRound(try device.prover(), nonce: nonce(1)) == .accepted)
    let entries = try device.ledger.auditEntries(after: before, limit: 10)
    #expect(entries.count == 1)
    guard case .round(let round)? = entries.first?.event else { return #expect(Bool(false)) }
    #expect(round.isCompatibility)
    #expect(round.status == .accepted)
  }

  @Test func `an accepted compatibility round proves a peer, and the same bytes again do not`() throws {
    let device = try device()
    let prover = try device.prover()
    let connection = try device.connect()
    #expect(try connection.compatibilityRound(prover, nonce: nonce(1)) == .accepted)
    #expect(connection.lastResponse?.isPeerAuthenticated == true)
    #expect(try connection.compatibilityRound(prover, nonce: nonce(1)) == .deviceMismatch)
    #expect(connection.lastResponse?.isPeerAuthenticated == false)
    device.clock.seconds = testTime + 100_000
    #expect(try connection.compatibilityRound(prover, nonce: nonce(1)) != .accepted)
    #expect(connection.lastResponse?.isPeerAuthenticated == false)
  }
}
