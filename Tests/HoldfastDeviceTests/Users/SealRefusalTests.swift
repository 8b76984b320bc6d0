import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// Refusals, which users give in place of seals, and the reasons of other rejections.
@Suite struct SealRefusalTests {
  private let device: TestDevice

  init() throws {
    device = try TestDevice()
    device.requireCodes()
    try device.add()
  }

  /// The refusal of `lock` with these parameters.
  private func refusal(
    _ method: CodeMethod = counterSealMethod, _ position: UInt64 = 0, _ parameters: [BoundedText<64>] = [],
    challenge: [UInt8] = [], command: BoundedText<32> = "lock"
  ) throws -> UserCode {
    try seal(method, position, challenge: challenge, command, parameters, isRefusal: true)
  }

  private func give(
    _ seal: UserCode?, otp: UserCode? = nil, parameters: [String] = [], number: UInt64? = nil,
    to command: String = "lock"
  ) throws -> TestVerdict {
    try device.connect().round(
      device.prover(), command, parameters: parameters, otp: otp, seal: seal, number: number)
  }

  private let wrong = UserCode(user: ann, code: BoundedText("00000000"))

  @Test func `a refusal is recorded, uses its position up, is no failure, and nothing is done`() throws {
    let before = try #require(try device.record())
    let verdict = try give(refusal(), number: 7)
    #expect((verdict.status, verdict.result) == (.sealRejected, "refusedByUser"))
    var after = try #require(try device.record())
    #expect(after.accounts[.seal]?.nextPosition == 1)
    after.accounts = before.accounts
    #expect(after == before)
    #expect(device.lock.current == .locked)
    let events = try device.lastEvents(2)
    guard case .round(let round) = events[0], case .failed(let failure) = events[1] else {
      Issue.record("\(events)")
      return
    }
    #expect((round.status, round.command, round.user) == (.sealRejected, BoundedText("lock"), ann))
    #expect(failure.reason == .refusedByUser)
    #expect(try failure.round == device.ledger.summary().audit.count - 1)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `the same request is answered from the record, also after a restart, and its number is used`() throws {
    #expect(try give(refusal(), number: 7).status == .sealRejected)
    try device.reopenLedger()
    let count = try device.ledger.summary().audit.count
    let again = try give(refusal(), number: 7)
    #expect(again.status == .sealRejected && again.notice?.highestRequestNumber == 7)
    #expect(try give(refusal(counterSealMethod, 1), to: "lock").result == "refusedByUser")
    // The same number with a seal is not carried out.
    let sealed = try give(counterSeal(2, "lock"), number: 7)
    #expect(sealed.status == .sealRejected && sealed.notice?.highestRequestNumber == 7)
    let other = try give(counterSeal(2, "lock"), parameters: ["1"], number: 7)
    #expect((other.status, other.result) == (.commandRefused, "anotherCommand"))
    #expect(try device.ledger.summary().audit.count == count + 2)
    #expect(try give(counterSeal(2, "lock"), number: 8).status == .accepted)
  }

  @Test func `a refusal is never a seal, and a used one is only a wrong seal`() throws {
    #expect(try give(refusal()).result == "refusedByUser")
    let replayed = try give(refusal())
    #expect((replayed.status, replayed.result) == (.sealRejected, ""))
    #expect(try device.record()?.failureCount == 1)
    for other in [
      try refusal(counterSealMethod, 1, [BoundedText("7")]), try refusal(counterSealMethod, 1, command: "unlock"),
      try refusal(counterSealMethod, 40),
    ] {
      let verdict = try give(other)
      #expect((verdict.status, verdict.result) == (.sealRejected, ""))
    }
    #expect(try device.record()?.failureCount == 4)
    #expect(try give(counterSeal(1, "lock")).status == .accepted)
  }

  @Test func `refusals neither make failures vanish nor end a lockout`() throws {
    for _ in 0..<4 { _ = try give(wrong) }
    let refused = try give(refusal())
    #expect(refused.result == "refusedByUser" && refused.notice?.retryAfterSeconds == nil)
    #expect(try device.record()?.failureCount == 4 && device.record()?.lockedUntil == 0)
    #expect(try give(wrong).status == .sealRejected)
    let locked = try #require(try device.record())
    #expect(locked.failureCount == 5 && locked.lockedUntil == testTime + 30)
    let during = try give(refusal(counterSealMethod, 1))
    #expect(during.status == .lockedOut && during.result == "")
    #expect(try device.record() == locked)
    device.clock.seconds = testTime + 30
    #expect(try give(refusal(counterSealMethod, 1)).result == "refusedByUser")
    #expect(try device.record()?.failureCount == 5)
    // The next failure is the sixth, as if there had been no refusal.
    #expect(try give(wrong).notice?.retryAfterSeconds == 60)
    device.clock.seconds = testTime + 90
    #expect(try give(counterSeal(2, "lock")).status == .accepted)
    #expect(try device.record()?.failureCount == 0)
  }

  @Test func `with both codes, a refusal needs the right password, and a wrong one is told first`() throws {
    device.policy.commands[BoundedText("lock")]?.factors = [.device, .otp, .seal]
    let bad = try give(refusal(), otp: UserCode(user: ann, code: BoundedText("000000")))
    #expect((bad.status, bad.result) == (.otpRejected, ""))
    #expect(try device.record()?.failureCount == 1)
    #expect(try give(refusal(), otp: password(0)).result == "refusedByUser")
    #expect(try device.record()?.failureCount == 1)
    let used = try give(counterSeal(1, "lock"), otp: password(0))
    #expect((used.status, used.result) == (.otpRejected, "codeUsed"))
  }

  @Test func `refusals by time and by challenge are recorded, too`() throws {
    try device.add(seal: timeSealMethod, replaces: true)
    #expect(try give(refusal(timeSealMethod, testTime / 60)).result == "refusedByUser")
    // The step is used up, for seals as well.
    let used = try give(seal(timeSealMethod, testTime / 60, "lock"))
    #expect((used.status, used.result) == (.sealRejected, "codeUsed"))
    try device.add(seal: challengeSealMethod, replaces: true)
    try setChallenge(expires: testTime + 300)
    #expect(try give(refusal(challengeSealMethod, challenge: challenge)).result == "refusedByUser")
    #expect(try device.record()?.challenge == nil)
    #expect(try give(refusal(challengeSealMethod, challenge: challenge)).result == "noChallenge")
  }

  private let challenge: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]

  private func setChallenge(expires: UInt64) throws {
    let bytes = FixedBytes<8>(challenge.span)!
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      guard var user = try tables.user(named: ann) else { throw .misuse }
      user.challenge = IssuedChallenge(bytes: bytes, expires: expires)
      try tables.save(user)
    }
  }

  @Test func `a used code, an old one and a challenge that is gone are told, and a guess is told nothing`() throws {
    #expect(try give(nil, otp: password(3), to: "unlock").status == .accepted)
    #expect(try give(nil, otp: password(0), to: "unlock").result == "", "only the last ones are looked at")
    for counter in [1, 3] as [UInt64] {
      let verdict = try give(nil, otp: password(counter), to: "unlock")
      #expect((verdict.status, verdict.result) == (.otpRejected, "codeUsed"))
    }
    #expect(try give(nil, otp: UserCode(user: ann, code: BoundedText("000000")), to: "unlock").result == "")
    #expect(try give(counterSeal(0, "lock")).status == .accepted)
    #expect(try give(counterSeal(0, "lock")).result == "codeUsed")
    #expect(try give(counterSeal(0, "lock"), parameters: ["7"]).result == "")
    #expect(try give(UserCode(user: bob, code: BoundedText("00000000"))).result == "")
    try device.add(seal: timeSealMethod, replaces: true)
    let step = testTime / 60
    #expect(try give(seal(timeSealMethod, step - 4, "lock")).result == "codeTooOld")
    #expect(try give(seal(timeSealMethod, step - 5, "lock")).result == "")
    #expect(try give(seal(timeSealMethod, step + 5, "lock")).result == "")
    #expect(try give(seal(timeSealMethod, step, "lock")).status == .accepted)
    #expect(try give(seal(timeSealMethod, step - 2, "lock")).result == "codeUsed")
    try device.add(seal: challengeSealMethod, replaces: true)
    let sealed = try seal(challengeSealMethod, challenge: challenge, "lock")
    let missing = try give(sealed)
    #expect((missing.status, missing.result) == (.sealRejected, "noChallenge"))
    try setChallenge(expires: testTime)
    #expect(try give(sealed).result == "challengeExpired")
    try setChallenge(expires: testTime + 1)
    #expect(try give(sealed).status == .accepted)
    #expect(try device.record()?.failureCount == 0)
  }
}
