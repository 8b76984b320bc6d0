import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// `user-sync` and `host-code`, as a device carries them out once policy has allowed them.
@Suite struct UserCommandsTests {
  private func perform(
    _ device: TestDevice, _ command: String, _ parameters: String..., random: UInt8 = 1
  ) throws -> [UInt8]? {
    var request = Request(command: try #require(BoundedText<32>(command)))
    for parameter in parameters { try request.append(parameter: try #require(BoundedText<64>(parameter))) }
    var result = ResultBuffer()
    let connection = try device.connect(random: random)
    guard try connection.performUserCommand(request, result: &result) else { return nil }
    return Array(result.bytes)
  }

  private func cbor(_ body: (inout [UInt8]) -> Void) -> [UInt8] {
    var bytes: [UInt8] = []
    body(&bytes)
    return bytes
  }

  private func activated(_ device: TestDevice) throws -> [CodePurpose: [UInt8]] {
    var visitor = TestVisitor()
    #expect(try visitor.use(try device.ledger.issue(otp: totpMethod, seal: challengeSealMethod), at: device.connect()))
    return visitor.secrets
  }

  @Test func `other commands are left to the lock`() throws {
    #expect(try perform(TestDevice(), "unlock") == nil)
    #expect(try perform(TestDevice(), "user-syn", "ann") == nil)
  }

  @Test func `user-sync tells the user's time and the next positions`() throws {
    let device = try TestDevice()
    try device.add(seal: nil, nextPosition: 41)
    let record = try #require(try device.record())
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      var record = record
      record.clockOffsetSeconds = -70
      try tables.save(record)
    }
    let expected = cbor {
      $0.appendCBOR(array: 3)
      $0.appendCBOR(unsigned: testTime - 70)
      $0.appendCBOR(unsigned: 41)
      $0.appendCBORNull()
    }
    #expect(try perform(device, "user-sync", "ann") == expected)
    #expect(try perform(device, "user-sync", "bob") == [])
    #expect(try perform(device, "user-sync", String(repeating: "x", count: 64)) == [])
    #expect(throws: ActuatorFailure.self) { _ = try perform(device, "user-sync") }
    #expect(throws: ActuatorFailure.self) { _ = try perform(device, "user-sync", "ann", "bob") }
    #expect(try device.record()?.clockOffsetSeconds == -70)
  }

  /// The verdict of a round with `host-code`.
  private func host(
    _ device: TestDevice, _ parameters: [String], as prover: TestProver? = nil, random: UInt8 = 1
  ) throws -> TestVerdict {
    try device.connect(random: random).round(prover ?? device.prover(), "host-code", parameters: parameters)
  }

  private func rounds(_ device: TestDevice, after count: UInt64) throws -> [AuditedRound] {
    try device.ledger.auditEntries(after: count, limit: 100).compactMap {
      if case .round(let round) = $0.event { round } else { nil }
    }
  }

  @Test func `host-code answers with a fresh challenge, and the code over both`() throws {
    let device = try TestDevice()
    _ = try activated(device)
    let answer = try #require(try host(device, ["ann", "0123456789abcdef"]).result)
    let words = answer.split(separator: " ")
    try #require(words.count == 2)
    let (challenge, code) = (words[0], words[1])
    let kept = try #require(try device.record()?.challenge)
    #expect(
      challenge
        == Array(kept.bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())
    #expect(kept.expires == testTime + 300 && code.count == 8)
    device.clock.seconds = testTime + 60
    let again = try #require(try host(device, ["ann", "0123456789abcdef"], random: 2).result)
    #expect(again != answer)
    #expect(try device.record()?.challenge != kept)
  }

  @Test func `host-code takes sixteen hexadecimal digits and a known user`() throws {
    let device = try TestDevice()
    _ = try activated(device)
    for challenge in [
      "", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", "0123456789abcde ", "é123456789abcde",
    ] {
      #expect(try host(device, ["ann", challenge]).status == .internal)
    }
    #expect(try host(device, ["ann"]).status == .internal)
    #expect(try host(device, []).status == .internal)
    #expect(try device.record()?.challenge == nil)
    let unknown = try host(device, ["bob", "0123456789abcdef"])
    #expect(unknown == TestVerdict(status: .accepted, result: "", notice: Notice()))
  }

  @Test func `asking for host codes changes neither failures nor lockout`() throws {
    let device = try TestDevice()
    device.requireCodes()
    _ = try activated(device)
    let prover = try device.prover()
    for _ in 0..<5 { _ = try device.connect().round(prover, otp: UserCode(user: ann, code: BoundedText("000000"))) }
    var before = try #require(try device.record())
    #expect(before.lockedUntil == testTime + 30)
    #expect(try host(device, ["ann", "0123456789abcdef"]).status == .accepted)
    let after = try #require(try device.record())
    #expect(after.challenge != nil)
    before.challenge = after.challenge
    #expect(after == before)
  }

  @Test func `a challenge that is pending is not replaced within a minute, and the try costs nothing`() throws {
    let device = try TestDevice()
    _ = try activated(device)
    let counted = try device.prover { ($0.maximumUses, $0.tokenID) = (2, TokenID(filledWith: 9)) }
    #expect(try host(device, ["ann", "0123456789abcdef"]).status == .accepted)
    let kept = try #require(try device.record()?.challenge)
    let before = try device.ledger.summary()
    for wait in [0, 59] as [UInt64] {
      device.clock.seconds = testTime + wait
      let verdict = try host(device, ["ann", "0123456789abcdef"], as: counted, random: 2)
      #expect((verdict.status, verdict.result) == (.busy, "challengePending"))
      #expect(try device.record()?.challenge == kept)
    }
    #expect(try device.ledger.summary() == before)
    device.clock.seconds = testTime + 60
    #expect(try host(device, ["ann", "0123456789abcdef"], as: counted, random: 2).status == .accepted)
    #expect(try device.record()?.challenge != kept)
  }

  @Test func `a challenge of a clock that was ahead protects nothing, and one that was used neither`() throws {
    let device = try TestDevice()
    _ = try activated(device)
    device.clock.seconds = testTime + 1000
    #expect(try host(device, ["ann", "0123456789abcdef"]).status == .accepted)
    device.clock.seconds = testTime
    #expect(try host(device, ["ann", "0123456789abcdef"], random: 2).status == .accepted)
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      guard var record = try tables.user(named: ann) else { throw .misuse }
      record.challenge = nil
      try tables.save(record)
    }
    #expect(try host(device, ["ann", "0123456789abcdef"], random: 3).status == .accepted)
  }

  @Test(arguments: ["host-code", "user-sync"])
  func `a token with a user names that user only`(command: String) throws {
    let device = try TestDevice()
    _ = try activated(device)
    let parameters = command == "host-code" ? ["0123456789abcdef"] : []
    let before = try device.ledger.summary()
    let mallory = try device.prover { $0.user = "mallory" }
    for user in ["ann", "nobody", "Mallory", "", "mallory "] {
      let verdict = try device.connect().round(mallory, command, parameters: [user] + parameters)
      #expect((verdict.status, verdict.result) == (.commandRefused, "anotherUser"))
    }
    #expect(try device.record()?.challenge == nil)
    #expect(try device.ledger.summary() == before)
    #expect(try device.connect().round(mallory, command, parameters: ["mallory"] + parameters).status == .accepted)
    let anns = try device.prover { $0.user = "ann" }
    #expect(try device.connect().round(anns, command, parameters: ["ann"] + parameters).status == .accepted)
    #expect(try rounds(device, after: before.audit.count).map(\.user) == [BoundedText("mallory"), ann])
  }

  @Test func `a command of users that needs a code is about the user of the code`() throws {
    let device = try TestDevice()
    device.policy.commands[BoundedText("user-sync")]?.factors = [.device, .otp]
    try device.add()
    let verdict = try device.connect().round(
      try device.prover(), "user-sync", parameters: ["bob"], otp: try password(0))
    #expect((verdict.status, verdict.result) == (.commandRefused, "anotherUser"))
    let accepted = try device.connect().round(
      try device.prover(), "user-sync", parameters: ["ann"], otp: try password(0))
    #expect(accepted.status == .accepted)
  }
}
