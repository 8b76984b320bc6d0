import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import TestSupport
import Testing

@Suite struct TokenRulesTests {
  @Test func `a replayed message is a wrong device proof`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    let connection = try device.connect()
    let answer = try prover.answer(try connection.challenge(), command: "unlock")
    #expect(try prover.open(connection.respond(answer.message), after: answer).status == .accepted)
    _ = try connection.challenge()
    #expect(
      try prover.open(connection.respond(answer.message), after: answer)
        == TestVerdict(status: .deviceMismatch, result: nil, notice: nil))
  }

  @Test func `a challenge is good for one answer`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    let connection = try device.connect()
    let answer = try prover.answer(try connection.challenge(), command: "status")
    #expect(try prover.open(connection.respond(answer.message), after: answer).status == .accepted)
    #expect(try prover.open(connection.respond(answer.message), after: answer).status == .challengeExpired)
  }

  @Test func `a token for another device is invalid`() throws {
    let device = try TestDevice()
    let other = DeviceID(filledWith: 9)
    let prover = try device.prover { $0.audience = other }
    #expect(try device.connect().round(prover).status == .tokenInvalid)
  }

  @Test func `a token that was encrypted to another device is invalid`() throws {
    let device = try TestDevice()
    let claims = TestClaims(for: device.folder.descriptor.deviceID)
    let prover = TestProver(claims, token: try device.issuer.token(claims, to: try TestIssuer().point))
    #expect(try device.connect().round(prover).status == .tokenInvalid)
  }

  @Test func `a reference is unknown until its token came whole`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    let connection = try device.connect()
    #expect(try connection.round(prover, flaws: .asReference).status == .tokenUnknown)
    #expect(try connection.round(prover).status == .accepted)
    #expect(try connection.round(prover, flaws: .asReference).status == .accepted)
    #expect(try device.connect(number: 2).round(prover, flaws: .asReference).status == .accepted)
  }

  @Test func `a token whose holder proved nothing is not remembered`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    #expect(try device.connect().round(prover, flaws: .wrongDevice).status == .deviceMismatch)
    #expect(device.memory.count == 0)
  }

  @Test func `an issuer removed by another process counts no longer, though its token is remembered`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    let connection = try device.connect()
    #expect(try connection.round(prover).status == .accepted)
    let elsewhere = try device.folder.openLedger()
    #expect(try elsewhere.removeTrust(try device.issuer.keyID(), realClock: testTime))
    #expect(try connection.round(prover, flaws: .asReference).status == .tokenInvalid)
    #expect(try connection.round(prover).status == .tokenInvalid)
    try elsewhere.trust(.signing(device.issuer.point), realClock: testTime)
    #expect(try connection.round(prover, flaws: .asReference).status == .accepted)
  }

  @Test func `an unsigned token is refused unless policy takes it, and again once it does not`() throws {
    let device = try TestDevice()
    let prover = try device.prover(isSigned: false)
    let connection = try device.connect()
    #expect(try connection.round(prover).status == .tokenInvalid)
    device.policy.acceptsUnsigned = true
    #expect(try connection.round(prover).status == .accepted)
    device.policy.acceptsUnsigned = false
    #expect(try connection.round(prover, flaws: .asReference).status == .tokenInvalid)
  }

  @Test func `the highest accepted generation revokes older tokens of the same issuer alone`() throws {
    let device = try TestDevice()
    let other = try TestIssuer()
    try device.ledger.trust(.signing(other.point), realClock: testTime)
    let connection = try device.connect()
    #expect(try connection.round(try device.prover { $0.generation = 5 }, "open").status == .commandRefused)
    #expect(try connection.round(try device.prover { $0.generation = 4 }).status == .accepted)
    #expect(try connection.round(try device.prover { $0.generation = 5 }).status == .accepted)
    let old = try connection.round(try device.prover { $0.generation = 4 })
    #expect(old.status == .tokenRevoked)
    #expect(old.notice?.generationFloor == 5)
    #expect(try connection.round(try device.prover(from: other) { $0.generation = 4 }).status == .accepted)
    #expect(try device.ledger.issuers().map(\.generationFloor).sorted() == [4, 5])
  }

  @Test func `an unsigned token moves no generation floor and no clock floor`() throws {
    let device = try TestDevice()
    device.policy.acceptsUnsigned = true
    let connection = try device.connect()
    let unsigned = try device.prover(isSigned: false) {
      ($0.generation, $0.issuedAt) = (9, testTime + 5)
    }
    #expect(try connection.round(unsigned).status == .accepted)
    #expect(try connection.round(try device.prover()).status == .accepted)
    #expect(try device.ledger.summary().clockFloor == testTime)
  }

  @Test func `a token names the commands that it is good for`() throws {
    let device = try TestDevice()
    let prover = try device.prover { $0.commands = ["status"] }
    let connection = try device.connect()
    #expect(try connection.round(prover, "unlock").status == .commandRefused)
    #expect(try connection.round(prover, "status").result == "locked")
    #expect(try connection.round(try device.prover { $0.commands = [] }, "status").status == .commandRefused)
  }

  @Test func `status needs no integrity proof, unlock does, and a wrong one is never overlooked`() throws {
    let device = try TestDevice()
    let prover = try device.prover()
    let connection = try device.connect()
    #expect(try connection.round(prover, "status", flaws: .noIntegrity).status == .accepted)
    #expect(try connection.round(prover, "status", flaws: .wrongIntegrity).status == .integrityMismatch)
    let denied = try connection.round(prover, "unlock", flaws: .noIntegrity)
    #expect(denied.status == .factorMissing)
    #expect(denied.notice?.missingFactors == .integrity)
  }
}
