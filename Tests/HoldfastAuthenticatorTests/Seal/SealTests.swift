import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastAuthenticator

@Suite struct SealTests {
  let test: TestAuthenticator

  init() throws {
    test = try TestAuthenticator()
  }

  private func seal(
    _ command: String, _ parameters: [String] = [], challenge: DeviceChallenge? = nil, at seconds: UInt64? = testTime
  ) throws -> Code {
    let record = try test.authenticator.record(purpose: .seal)
    let request = try SealRequest(command: command, parameters: parameters, fieldByteLimit: record.sealFieldByteLimit)
    return try test.authenticator.seal(
      request, for: record, challenge: challenge, with: .none, clock: TestClock(seconds: seconds))
  }

  @Test func `a challenge of the client's has 16 digits, two for each random byte`() throws {
    var random = RepeatingRandom([0, 0x0a, 0x7f, 0x80, 0xff, 0x10, 0x01, 0xf0])
    let challenge = try DeviceChallenge(random: &random)
    #expect(challenge.digits == "000a7f80ff1001f0")
    #expect(DeviceChallenge(challenge.digits) == challenge)
  }

  // The expected values below were made in Python, only from RFC 6287 and docs/protocol.md.

  @Test func `the question of a seal is the digest of command and parameters`() throws {
    var cryptography = OpenSSLCryptography()
    let question = try sealQuestion(
      command: BoundedText("open-safe"), parameterCount: 0, parameter: { _ in BoundedText() }, using: &cryptography)
    #expect(
      String(decoding: [UInt8](question.bytes), as: UTF8.self)
        == "6dfa2909a512b3d489e763314e928ec5f404aa5c39df4d568d80b4aca9943c7a")
    let parameters: [BoundedText<64>] = [BoundedText("volume"), BoundedText("é")]
    let other = try sealQuestion(
      command: BoundedText("configure"), parameterCount: 2, parameter: { parameters[$0] }, using: &cryptography)
    #expect(
      String(decoding: [UInt8](other.bytes), as: UTF8.self)
        == "dd484c114b9dbe324328c5b98ec418e51128624b92cd85969b471a8b6f3d90a4")
  }

  @Test func `a seal by time is over the command, its parameters and the minute`() throws {
    try test.add(NewRecord("alice", 2, .seal, .usualSeal))
    #expect(try seal("open-safe") == Code(text: "06908408", secondsRemaining: 20))
    #expect(try seal("configure", ["volume", "é"]).text == "58186570")
    #expect(try seal("configure", ["volume", "e\u{301}"]).text == "58186570")
    #expect(try seal("configure", ["volumeé"]).text != "58186570")
    #expect(fault { _ = try seal("open-safe", at: nil) } == .clockOutOfRange)
  }

  @Test func `a seal by counter records the counter first, and needs no clock`() throws {
    try test.add(NewRecord("alice", 2, .seal, .ocra("OCRA-1:HOTP-SHA256-8:C-QH64"), window: 2))
    #expect(try seal("open-safe", ["7"], at: nil) == Code(text: "00839481", secondsRemaining: nil))
    #expect(try test.again().record(purpose: .seal).nextCounter == 1)
    #expect(try seal("open-safe", ["7"], at: nil).text == "64914719")
    #expect(fault { _ = try seal("open-safe", ["7"]) } == .notSynchronised)
  }

  @Test func `a seal by challenge is over the device's challenge too, and there is none without it`() throws {
    try test.add(NewRecord("alice", 2, .seal, .ocra("OCRA-1:HOTP-SHA256-8:QH64")))
    #expect(try test.authenticator.record(purpose: .seal).needsChallenge)
    #expect(try seal("open-safe", challenge: DeviceChallenge("00112233AABBCCDD")).text == "78396261")
    #expect(fault { _ = try seal("open-safe") } == .badQuestion)
    try test.add(NewRecord("alice", 2, .seal, .usualSeal), replacing: true)
    #expect(fault { _ = try seal("open-safe", challenge: DeviceChallenge("00112233aabbccdd")) } == .badQuestion)
  }

  @Test func `what is no challenge is none`() {
    for text in ["", "00112233aabbccd", "00112233aabbccdde", "00112233aabbccdg", "０0112233aabbcc"] {
      #expect(DeviceChallenge(text) == nil)
    }
  }

  private func requestFault(
    _ command: String, _ parameters: [String] = [], limit: Int? = nil
  ) -> SealFault? {
    do throws(SealFault) {
      _ = try SealRequest(command: command, parameters: parameters, fieldByteLimit: limit)
      return nil
    } catch { return error }
  }

  @Test func `fields that cannot be shown and sealed are refused`() {
    #expect(requestFault("") == .command(.empty))
    #expect(requestFault(String(repeating: "a", count: 33)) == .command(.tooLong))
    #expect(requestFault("open\nsafe") == .command(.controlCharacter))
    #expect(requestFault("a", [String](repeating: "b", count: 8)) == nil)
    #expect(requestFault("a", [String](repeating: "b", count: 9)) == .tooManyParameters)
    #expect(requestFault("a", ["b", ""]) == .parameter(2, .empty))
    for character in ["\u{0}", "\u{1b}", "\u{7f}", "\u{85}", "\u{202e}", "\u{2066}", "\u{200f}", "\u{2028}"]
      + ["\u{200b}", "\u{ad}", "\u{61c}", "\u{2060}", "\u{feff}", "\u{3164}", "\u{fe0f}", "\u{e0041}"]
    {
      #expect(requestFault("a", ["b" + character]) == .parameter(1, .controlCharacter))
    }
  }

  @Test func `a field has 16 characters, or as many bytes as the record allows`() {
    #expect(requestFault("a", [String(repeating: "b", count: 16)]) == nil)
    #expect(requestFault("a", [String(repeating: "b", count: 17)]) == .parameter(1, .tooLong))
    #expect(requestFault("a", [String(repeating: "𝄞", count: 16)]) == nil)
    #expect(requestFault("a", [String(repeating: "e\u{301}", count: 16)]) == nil)
    #expect(requestFault("a", [String(repeating: "b", count: 64)], limit: 64) == nil)
    #expect(requestFault("a", [String(repeating: "b", count: 65)], limit: 64) == .parameter(1, .tooLong))
    #expect(requestFault("a", [String(repeating: "b", count: 65)], limit: 1000) == .parameter(1, .tooLong))
    #expect(requestFault("a", [String(repeating: "é", count: 33)], limit: 64) == .parameter(1, .tooLong))
  }

  @Test func `text is sealed as NFC writes it`() throws {
    let composed = try SealRequest(command: "caf\u{e9}", parameters: ["\u{212b}"])
    let decomposed = try SealRequest(command: "cafe\u{301}", parameters: ["A\u{30a}"])
    #expect(Array(composed.command.utf8) == Array(decomposed.command.utf8))
    #expect(Array(composed.parameters[0].utf8) == [0xc3, 0x85])
    #expect(Array(decomposed.parameters[0].utf8) == [0xc3, 0x85])
  }
}
