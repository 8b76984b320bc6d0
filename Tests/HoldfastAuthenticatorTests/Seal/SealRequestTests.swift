import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastAuthenticator

/// A device's requests for seals, as an authenticator takes them.
@Suite struct SealRequestTests {
  private let test: TestAuthenticator
  private let device = DeviceID(filledWith: 0x44)
  private let hostSecret = [UInt8](repeating: 7, count: 32)

  init() throws {
    test = try TestAuthenticator()
    try add("OCRA-1:HOTP-SHA256-8:C-QH64", to: test)
  }

  private func add(_ suite: String, to test: TestAuthenticator) throws {
    for (index, purpose, suite, secret) in [
      (2, RecordPurpose.seal, suite, randomSecret), (3, .host, "OCRA-1:HOTP-SHA256-8:QH16", hostSecret),
    ] {
      try test.add(
        [
          NewRecord(
            index: index, purpose: purpose,
            credential: Credential(user: "alice", method: .ocra(suite), secret: SecretBytes(copying: secret.span)),
            deviceID: device)
        ], protection: .none)
    }
  }

  private func contents(_ change: (inout SealRequestContents) -> Void = { _ in }) -> SealRequestContents {
    var contents = SealRequestContents(
      device: device, user: "alice", command: "open-safe", parameters: ["7", "a b"],
      challenge: FixedBytes<8>(filledWith: 0xab), expires: testTime + 300, text: "Open safe 7 for a b")
    change(&contents)
    return contents
  }

  private func text(
    under secret: [UInt8]? = nil, _ change: (inout SealRequestContents) -> Void = { _ in }
  ) throws -> [UInt8] {
    let secret = secret ?? hostSecret
    return try #require(try contents(change).text(under: secret.span))
  }

  private func check(_ text: [UInt8], at seconds: UInt64? = testTime) throws -> CheckedSealRequest {
    try test.authenticator.check(text, clock: TestClock(seconds: seconds))
  }

  private func fault(_ text: [UInt8], at seconds: UInt64? = testTime) -> SealRequestFault? {
    do throws(SealRequestFault) {
      _ = try test.authenticator.check(text, clock: TestClock(seconds: seconds))
      return nil
    } catch { return error }
  }

  @Test func `a right request is shown as the device made it, and nothing is used up`() throws {
    let checked = try check(text())
    #expect((checked.user, checked.device, checked.record.index) == ("alice", device, 2))
    #expect((checked.sealed.command, checked.sealed.parameters) == ("open-safe", ["7", "a b"]))
    #expect((checked.text, checked.expires) == ("Open safe 7 for a b", testTime + 300))
    #expect(checked.challenge.digits == "abababababababab")
    #expect(try test.again().record(purpose: .seal).nextCounter == 0)
  }

  // The code was made in Python, only from RFC 6287 and docs/protocol.md.
  @Test func `the text is the one of the protocol's example`() throws {
    let example =
      "holdfast-seal:1?d=RERERERERERERERERERERA&u=alice&c=open-safe&p=7&p=a%20b&i=abababababababab"
      + "&e=\(testTime + 300)&t=Open%20safe%207%20for%20a%20b&h="
    let made = String(decoding: try text(), as: UTF8.self)
    #expect(made.hasPrefix(example) && made.count == example.count + 32)
    #expect(made.hasSuffix("&h=" + Self.exampleCode))
  }

  private static let exampleCode = "b3b39695bc83865854d8b9752f166e42"

  @Test func `an approval is the seal over command and parameters, and a rejection is another code`() throws {
    let checked = try check(text())
    let clock = TestClock(seconds: testTime)
    let sealed = try SealRequest(command: "open-safe", parameters: ["7", "a b"])
    let other = try TestAuthenticator()
    try add("OCRA-1:HOTP-SHA256-8:C-QH64", to: other)
    let record = try other.authenticator.record(purpose: .seal)
    let first = try test.authenticator.approve(checked, with: .none, clock: clock)
    #expect(try first == other.authenticator.seal(sealed, for: record, with: .none, clock: clock))
    let second = try test.authenticator.reject(checked, with: .none, clock: clock)
    #expect(try second == other.authenticator.refusal(of: sealed, for: record, with: .none, clock: clock))
    #expect(try test.again().record(purpose: .seal).nextCounter == 2)
    let third = try test.authenticator.approve(checked, with: .none, clock: clock)
    let thirdRefusal = try other.authenticator.refusal(of: sealed, for: record, with: .none, clock: clock)
    #expect(third != thirdRefusal)
  }

  @Test func `a record whose seals need a challenge takes that of the request`() throws {
    let other = try TestAuthenticator()
    try add("OCRA-1:HOTP-SHA256-8:QH64", to: other)
    let clock = TestClock(seconds: testTime)
    let checked = try other.authenticator.check(text(), clock: clock)
    let record = try other.authenticator.record(purpose: .seal)
    let challenge = try #require(DeviceChallenge("abababababababab"))
    #expect(
      try other.authenticator.approve(checked, with: .none, clock: clock)
        == other.authenticator.seal(checked.sealed, for: record, challenge: challenge, with: .none, clock: clock))
  }

  @Test func `no changed, forged, foreign or expired request is accepted`() throws {
    #expect(fault(try text(under: [1, 2, 3])) == .notAuthentic)
    // All is under the code: what one of these was made for serves for none of the others.
    let good = try text()
    let code = good.suffix(32)
    let changes: [(inout SealRequestContents) -> Void] = [
      { $0.command = "open-door" }, { $0.parameters = ["8", "a b"] }, { $0.parameters = ["7a b"] },
      { $0.parameters = [] }, { $0.challenge = FixedBytes<8>(filledWith: 1) }, { $0.expires = testTime + 301 },
      { $0.expires = nil }, { $0.text = nil }, { $0.text = "Water the plants" },
    ]
    for change in changes { #expect(fault(Array(try text(change).dropLast(32) + code)) == .notAuthentic) }
    #expect(fault(try text { $0.device = DeviceID(filledWith: 1) }) == .foreign)
    #expect(fault(try text { $0.user = "bob" }) == .foreign)
    #expect(fault(try text { $0.user = "Alice" }) == .foreign)
    #expect(fault(good, at: testTime + 300) == .expired)
    #expect(fault(good, at: testTime + 299) == nil)
    #expect(fault(good, at: nil) == .authenticator(.clockOutOfRange))
    #expect(fault(try text { $0.expires = nil }, at: nil) == nil)
    let checked = try check(good)
    #expect(throws: SealRequestFault.expired) {
      _ = try test.authenticator.approve(checked, with: .none, clock: TestClock(seconds: testTime + 300))
    }
    #expect(throws: SealRequestFault.expired) {
      _ = try test.authenticator.reject(checked, with: .none, clock: TestClock(seconds: testTime + 300))
    }
    #expect(try test.again().record(purpose: .seal).nextCounter == 0)
  }

  @Test func `the known difference of the clocks counts`() throws {
    let timed = try TestAuthenticator()
    try add("OCRA-1:HOTP-SHA256-8:QH64-T1M", to: timed)
    try timed.authenticator.synchronise(
      user: "alice", deviceID: device, offsetSeconds: -100, otpNext: nil, sealNext: nil, now: testTime)
    let text = try text()
    #expect(try timed.authenticator.check(text, clock: TestClock(seconds: testTime + 399)).user == "alice")
    #expect(throws: SealRequestFault.expired) {
      _ = try timed.authenticator.check(text, clock: TestClock(seconds: testTime + 400))
    }
  }

  @Test func `what a person could not read is not sealed, and its text is as the device says`() throws {
    for (parameter, fault) in [
      ("", SealFieldFault.empty), ("a\u{202e}b", .controlCharacter), ("a\nb", .controlCharacter),
      ("a\u{0}b", .controlCharacter), ("12345678901234567", .tooLong),
    ] {
      #expect(self.fault(try text { $0.parameters = [parameter] }) == .unreadable(.parameter(1, fault)))
    }
    // Not in the form that is sealed.
    #expect(fault(try text { $0.parameters = ["e\u{301}"] }) == .malformed)
    #expect(try check(text { $0.text = "\u{1b}[2J" }).text == "\u{1b}[2J")
  }

  @Test func `only the one form of a request is read`() throws {
    let good = String(decoding: try text(), as: UTF8.self)
    #expect(fault(Array(good.utf8)) == nil)
    for count in 0..<good.utf8.count { #expect(fault(Array(good.utf8.prefix(count))) == .malformed) }
    for (from, to) in [
      ("p=7", "p=%37"), ("%20", "+"), ("%20", " "), ("u=alice", "u=alic%65"), ("&p=7", "&q=7"), ("&p=7", ""),
      ("&u=alice&c=open-safe", "&c=open-safe&u=alice"), ("&u=alice", "&u=alice&u=alice"), ("&e=1", "&e=01"),
      ("&e=1", "&e=+1"), ("i=ab", "i=AB"), ("u=alice", "u="), ("holdfast-seal", "Holdfast-seal"), ("p=7", "p=%"),
      ("p=7", "p=%FF"), ("p=7", "p=%c3%a9"), ("p=7", "p=%00"), ("&h=", "&x=1&h="), ("&t=Open", "&t=&t=Open"),
    ] {
      #expect(good.contains(from))
      let changed = Array(good.replacing(from, with: to, maxReplacements: 1).utf8)
      #expect(fault(changed) == (to == "p=%00" || from == "&p=7" && to.isEmpty ? .notAuthentic : .malformed), "\(to)")
    }
    #expect(fault(Array((good + "\n").utf8)) == .malformed)
    #expect(fault(Array((good + "&").utf8)) == .malformed)
    #expect(fault(Array(good.replacing("seal:1?", with: "seal:2?").utf8)) == .newerVersion)
    #expect(fault([UInt8](repeating: 0x61, count: 701)) == .malformed)
    #expect(fault([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) == .malformed)
    #expect(try contents { $0.text = String(repeating: "x", count: 257) }.text(under: hostSecret.span) == nil)
    #expect(
      try contents { $0.parameters = Array(repeating: "x", count: 7) }.text(under: hostSecret.span) == nil)
    #expect(
      try contents { $0.parameters = Array(repeating: String(repeating: "é", count: 32), count: 4) }
        .text(under: hostSecret.span) == nil)
  }
}
