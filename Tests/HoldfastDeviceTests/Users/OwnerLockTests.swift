import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// Users whom the owner has locked by hand, and `user-state`, by which a user finds out.
@Suite struct OwnerLockTests {
  private func locked(until time: UInt64) throws -> TestDevice {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    try device.ledger.lockUser(ann, until: time, realClock: testTime)
    return device
  }

  @Test func `a locked user's right codes are not looked at until the lock ends`() throws {
    let device = try locked(until: testTime + 1000)
    let prover = try device.prover()
    for wait in [0, 999] as [UInt64] {
      device.clock.seconds = testTime + wait
      let verdict = try device.connect().round(prover, otp: try password(0))
      #expect(verdict.status == .lockedOut && verdict.notice?.retryAfterSeconds == 1000 - wait)
    }
    try device.reopenLedger()
    #expect(try device.connect().round(prover, otp: try password(0)).status == .lockedOut)
    #expect(try device.record()?.failureCount == 0)
    device.clock.seconds = testTime + 1000
    #expect(try device.connect().round(prover, otp: try password(0)).status == .accepted)
    #expect(try device.lastEvents(3).contains(.userLocked(ann, until: testTime + 1000)))
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `what a round writes about a user neither ends the lock nor prolongs it`() throws {
    let device = try locked(until: testTime + 1000)
    // The record of a round that was being judged as the owner locked the user, with a right code.
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      guard var user = try tables.user(named: ann) else { throw .misuse }
      user.unlock()
      try tables.save(user)
    }
    #expect(try device.record()?.lockedUntil == testTime + 1000)
    // One that changes something else of a locked user.
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      guard var user = try tables.user(named: ann) else { throw .misuse }
      user.clockOffsetSeconds = 5
      try tables.save(user)
    }
    try device.ledger.lockUser(ann, until: testTime + 10, realClock: testTime)
    #expect(try device.record()?.lockedUntil == testTime + 10)
    var visitor = TestVisitor()
    #expect(try visitor.use(device.ledger.issueUnlocking(), for: .unlock, at: device.connect()))
    let unlocked = try #require(try device.record())
    #expect(unlocked.lockedUntil == 0 && unlocked.clockOffsetSeconds == 5)
    #expect(try device.connect().round(device.prover(), otp: try password(0)).status == .accepted)
  }

  @Test func `codes of the owner's that were given out before do not end the lock`() throws {
    let device = try TestDevice()
    try device.add()
    let unlocking = try device.ledger.issueUnlocking()
    let activation = try device.ledger.issue(replaces: true)
    try device.ledger.lockUser(ann, until: maximumInteger, realClock: testTime)
    #expect(try device.ledger.openCodes().isEmpty)
    var visitor = TestVisitor()
    #expect(try !visitor.use(unlocking, for: .unlock, at: device.connect()))
    #expect(try !visitor.use(activation, at: device.connect()))
    #expect(try device.record()?.lockedUntil == maximumInteger)
    #expect(throws: LedgerFault.unknownUser) {
      try device.ledger.lockUser(bob, until: testTime + 1, realClock: testTime)
    }
    #expect(throws: LedgerFault.floorOutOfRange) {
      try device.ledger.lockUser(ann, until: maximumInteger + 1, realClock: testTime)
    }
  }

  @Test func `the code that unlocks a spare authenticator is withdrawn, too`() throws {
    let device = try TestDevice()
    try device.add()
    var visitor = TestVisitor()
    var random = TestRandom(state: 5)
    let spare = try device.ledger.issueActivation(
      of: device.ledger.nextSpare(of: ann), ByPurpose(otp: hotpMethod), replaces: false,
      terms: ActivationTerms(main: ann), realClock: testTime, random: &random)
    #expect(try visitor.use(spare.text, at: device.connect()))
    for locked in [ann, "ann#2"] as [BoundedText<32>] {
      let unlocking = try device.ledger.issueUnlocking("ann#2")
      try device.ledger.lockUser(locked, until: maximumInteger, realClock: testTime)
      #expect(try device.ledger.openCodes().isEmpty)
      #expect(try !visitor.use(unlocking, for: .unlock, at: device.connect()))
      #expect(try device.record()?.lockedUntil == maximumInteger)
    }
  }

  @Test func `an image keeps the lock too, withdraws the codes, and audits it`() throws {
    let test = try TestImage()
    try test.image.add(ann, otp: hotpMethod, seal: nil)
    var random = TestRandom(state: 4)
    _ = try test.image.issueUnlock(of: ann, realClock: testTime, random: &random)
    try test.image.lockUser(ann, until: testTime + 9, realClock: testTime)
    try test.reopen()
    #expect(try test.image.users().map(\.record.lockedUntil) == [testTime + 9])
    #expect(try test.image.openCodes().isEmpty)
    let last = try test.image.auditEntries(after: 0, limit: 100).last?.event
    #expect(last == .userLocked(ann, until: testTime + 9))
    #expect(throws: LedgerFault.unknownUser) {
      try test.image.lockUser(bob, until: testTime + 9, realClock: testTime)
    }
  }

  private func state(_ device: TestDevice, of user: String, as prover: TestProver? = nil) throws -> TestVerdict {
    try device.connect().round(prover ?? device.prover(), "user-state", parameters: [user])
  }

  private func answer(_ failures: UInt64, _ seconds: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: 2)
    bytes.appendCBOR(unsigned: failures)
    bytes.appendCBOR(unsigned: seconds)
    return bytes
  }

  private func answer(of device: TestDevice, _ parameters: String...) throws -> [UInt8] {
    var request = Request(command: UserCommandName.state)
    for parameter in parameters { try request.append(parameter: try #require(BoundedText<64>(parameter))) }
    var result = ResultBuffer()
    #expect(try device.connect().performUserCommand(request, result: &result))
    return Array(result.bytes)
  }

  @Test func `user-state tells failures and the seconds of a lockout, and changes nothing`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    #expect(try answer(of: device, "ann") == answer(0, 0))
    let prover = try device.prover()
    for _ in 0..<5 { _ = try device.connect().round(prover, otp: UserCode(user: ann, code: BoundedText("000000"))) }
    let before = try device.record()
    #expect(try answer(of: device, "ann") == answer(5, 30))
    device.clock.seconds = testTime + 12
    #expect(try answer(of: device, "ann") == answer(5, 18))
    try device.ledger.lockUser(ann, until: testTime + 500, realClock: testTime)
    #expect(try answer(of: device, "ann") == answer(5, 488))
    device.clock.seconds = testTime + 500
    #expect(try answer(of: device, "ann") == answer(5, 0))
    #expect(try device.record()?.failureCount == before?.failureCount)
    #expect(try answer(of: device, "bob") == [])
    #expect(throws: ActuatorFailure.self) { _ = try answer(of: device) }
    #expect(throws: ActuatorFailure.self) { _ = try answer(of: device, "ann", "bob") }
  }

  @Test func `user-state needs the policy's permission, and a token with a user asks about that user only`() throws {
    let device = try TestDevice()
    try device.add()
    let refused = try state(device, of: "ann")
    #expect((refused.status, refused.result) == (.commandRefused, "notInPolicy"))
    device.policy.commands[UserCommandName.state] = CommandRule(factors: [.device])
    let mallory = try device.prover { $0.user = "mallory" }
    let before = try device.ledger.summary()
    for user in ["ann", "nobody", "Mallory"] {
      let verdict = try state(device, of: user, as: mallory)
      #expect((verdict.status, verdict.result) == (.commandRefused, "anotherUser"))
    }
    #expect(try device.ledger.summary() == before)
    #expect(try state(device, of: "ann", as: device.prover { $0.user = "ann" }).status == .accepted)
  }
}
