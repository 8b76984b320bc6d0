import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

@testable import HoldfastCore
@testable import HoldfastDevice

/// `user-sync` and `host-code`, as a device carries them out once policy has allowed them.
@Suite struct UserCommandsTests {
  private func perform(
    _ device: TestDevice, _ command: String, _ parameters: String..., random: UInt8 = 1
  ) throws -> [UInt8]? {
    var request = Request(command: try #require(BoundedText<32>(command)))
    for parameter in parameters { try request.append(parameter: try #require(BoundedText<64>(parameter))) }
    var result = ByteBuffer<1024>()
    let connection = try device.connect(random: random)
    guard try connection.performUserCommand(request, result: &result) else { return nil }
    return Array(copying: result.bytes)
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

  @Test func `host-code answers with a fresh challenge, and the code over both`() throws {
    let device = try TestDevice()
    _ = try activated(device)
    let answer = try #require(try perform(device, "host-code", "ann", "0123456789abcdef"))
    let words = String(decoding: answer, as: UTF8.self).split(separator: " ")
    try #require(words.count == 2)
    let (challenge, code) = (words[0], words[1])
    let kept = try #require(try device.record()?.challenge)
    #expect(
      challenge
        == Array(kept.bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())
    #expect(kept.expires == testTime + 300 && code.count == 8)
    let again = try #require(try perform(device, "host-code", "ann", "0123456789abcdef", random: 2))
    #expect(again != answer)
    #expect(try device.record()?.challenge != kept)
  }

  @Test func `host-code takes sixteen hexadecimal digits and a known user`() throws {
    let device = try TestDevice()
    _ = try activated(device)
    for challenge in [
      "", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", "0123456789abcde ", "é123456789abcde",
    ] {
      #expect(throws: ActuatorFailure.self) { _ = try perform(device, "host-code", "ann", challenge) }
    }
    #expect(throws: ActuatorFailure.self) { _ = try perform(device, "host-code", "ann") }
    #expect(try device.record()?.challenge == nil)
    #expect(try perform(device, "host-code", "bob", "0123456789abcdef") == [])
  }

  @Test func `asking for host codes changes neither failures nor lockout`() throws {
    let device = try TestDevice()
    device.requireCodes()
    _ = try activated(device)
    let prover = try device.prover()
    for _ in 0..<5 { _ = try device.connect().round(prover, otp: UserCode(user: ann, code: BoundedText("000000"))) }
    var before = try #require(try device.record())
    #expect(before.lockedUntil == testTime + 30)
    _ = try perform(device, "host-code", "ann", "0123456789abcdef")
    let after = try #require(try device.record())
    before.challenge = after.challenge
    #expect(after == before)
  }
}
