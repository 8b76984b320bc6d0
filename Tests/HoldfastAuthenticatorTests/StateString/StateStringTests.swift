import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastAuthenticator

extension Passphrase {
  fileprivate init(_ text: String) throws(AuthenticatorFault) {
    try self.init(Array(text.utf8).span)
  }
}

@Suite struct StateStringTests {
  let test: TestAuthenticator

  init() throws {
    test = try TestAuthenticator()
    let records = [
      NewRecord(next: 5, window: 3),
      NewRecord("alice", 2, .seal, .usualSeal, secret: randomSecret, sealFieldByteLimit: 64),
      NewRecord("alice", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16"), secret: rfcSecret.reversed()),
      NewRecord("ülrike", 1, .otp, .totp, secret: randomSecret.reversed()),
    ]
    try test.add(records, protection: pin("1357"))
    try test.authenticator.synchronise(
      user: "alice", offsetSeconds: -3, otpNext: 7, sealNext: nil, now: testTime)
  }

  private func export(_ authenticator: Authenticator, _ passphrase: String = "correct horse") throws -> String {
    var random = TestRandom(state: 3)
    return try authenticator.exportState(under: Passphrase(passphrase), cost: .test, random: &random)
  }

  private func importState(
    _ text: String, into authenticator: Authenticator, _ passphrase: String = "correct horse", replacing: Bool = false
  ) throws {
    try authenticator.importState(Array(text.utf8).span, under: Passphrase(passphrase), replacing: replacing)
  }

  @Test func `the whole state is one line of ASCII, and comes back with all that it held`() throws {
    let line = try export(test.authenticator)
    #expect(line.hasPrefix("hfstate1"))
    #expect(line.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
    let other = try TestAuthenticator()
    try importState(line, into: other.authenticator)
    #expect(try other.authenticator.records() == test.authenticator.records())
    #expect(try other.code("alice", with: pin("1357")) == "162583")
  }

  @Test func `a line states the cost of its passphrase, whatever it is`() throws {
    var random = TestRandom(state: 3)
    let cost = try #require(ScryptCost(logarithm: 4, blockSize: 3, parallelization: 2))
    let line = try test.authenticator.exportState(under: Passphrase("correct horse"), cost: cost, random: &random)
    #expect(line.hasPrefix("hfstate1BAMC"))
    let other = try TestAuthenticator()
    try importState(line, into: other.authenticator)
    #expect(try other.authenticator.records() == test.authenticator.records())
  }

  @Test func `a line that was wrapped or indented on its way is read as well`() throws {
    let line = try export(test.authenticator)
    var wrapped = "\n"
    for (index, character) in line.enumerated() {
      wrapped.append(character)
      if index % 40 == 39 { wrapped += "\r\n\t " }
    }
    let other = try TestAuthenticator()
    try importState(wrapped, into: other.authenticator)
    #expect(try other.authenticator.records().count == 4)
  }

  @Test func `each wrong, missing or additional character is noticed before the passphrase is tried`() throws {
    let line = Array(try export(test.authenticator).utf8)
    func isMalformed(_ bytes: [UInt8]) -> Bool {
      fault { try Authenticator.checkState(bytes.span) } == .malformedState
    }
    #expect(fault { try Authenticator.checkState(line.span) } == nil)
    for index in line.indices {
      var wrong = line
      wrong[index] = wrong[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(isMalformed(wrong), "at \(index)")
    }
    for count in 0..<line.count { #expect(isMalformed(Array(line[..<count]))) }
    #expect(isMalformed(line + line))
    #expect(isMalformed(line + [UInt8(ascii: "=")]))
    #expect(isMalformed([UInt8](repeating: UInt8(ascii: "A"), count: 2 << 20)))
  }

  @Test func `another passphrase opens nothing, and a weak one is not taken`() throws {
    let line = try export(test.authenticator)
    let other = try TestAuthenticator()
    #expect(fault { try importState(line, into: other.authenticator, "correct hors") } == .wrongPassphrase)
    for weak in ["", "1357", "12345678901234", "kürzer!", "7 chars", String(repeating: "x", count: 1025)] {
      #expect(fault { _ = try export(test.authenticator, weak) } == .weakPassphrase)
    }
    for least in ["8 digits", "kürzest!", String(repeating: "x", count: 1024)] {
      #expect(fault { _ = try export(test.authenticator, least) } == nil)
    }
  }

  @Test func `the state of nobody is not exported`() throws {
    let other = try TestAuthenticator()
    #expect(fault { _ = try export(other.authenticator) } == .noRecords)
  }

  @Test func `records that are there are not replaced unless it is said so`() throws {
    let line = try export(test.authenticator)
    #expect(fault { try importState(line, into: test.authenticator) } == .notEmpty)
    #expect(try test.authenticator.records().count == 4)
  }

  @Test func `where a state replaces another, no counter goes back`() throws {
    let line = try export(test.authenticator)
    for _ in 0..<3 { _ = try test.code("alice", with: pin("1357")) }
    _ = try test.code("ülrike", with: pin("1357"))
    try test.add(NewRecord("carol", 1))
    let before = try test.authenticator.records()
    try importState(line, into: test.authenticator, replacing: true)
    let after = try test.authenticator.records()
    #expect(after.map(\.user) == ["alice", "alice", "alice", "ülrike"])
    #expect(after[0].nextCounter == 10 && after[0].acknowledgedCounter == 7)
    #expect(after[3].lastTimeStep == before[4].lastTimeStep && after[3].lastTimeStep != nil)
  }

  @Test func `where the state is the newer one, its counters count`() throws {
    let older = try TestAuthenticator()
    try older.add([NewRecord()], protection: pin("8642"))
    try importState(export(test.authenticator), into: older.authenticator, replacing: true)
    #expect(try older.authenticator.records() == test.authenticator.records())
    #expect(try older.code("alice", with: pin("1357")) == "162583")
  }

  @Test func `a change of the PIN that is open goes along, and can be undone there`() throws {
    var random = TestRandom(state: 9)
    let record = try test.authenticator.record(user: "alice", purpose: .otp)
    let code = try test.authenticator.prepareChange(of: record, random: &random)
    try test.authenticator.change(record, from: pin("1353"), to: pin("2468"), under: code, random: &random)
    let other = try TestAuthenticator()
    try importState(export(test.authenticator), into: other.authenticator)
    try other.authenticator.undoChange(user: "alice", under: code)
    #expect(try other.code("alice", with: pin("1357")) == "162583")
  }

  @Test func `the secrets are in no file in the clear, nor is what they were blinded with`() throws {
    let line = try export(test.authenticator)
    for name in FileNames.all {
      guard let bytes = try? test.place.contents("a/" + name) else { continue }
      #expect(!bytes.contains(bytes: Array(randomSecret.prefix(8))))
      #expect(!bytes.contains(bytes: Array("1357".utf8)))
    }
    #expect(!line.contains("alice"))
  }

  @Test func `an import that fails once something was erased says so, and can be made again`() throws {
    let line = try export(test.authenticator)
    let other = try TestAuthenticator()
    try other.add([NewRecord(secret: randomSecret)], protection: pin("8642"))
    // In the second authenticator, nothing is erased but what waits.
    var random = TestRandom(state: 5)
    let fresh = [NewRecord(secret: Array("new, 20 random bytes".utf8))]
    #expect(try test.authenticator.store(fresh, protection: pin("2468"), replacing: true, random: &random))
    for target in [other, test] {
      let database = target.authenticator.tables.database
      try database.run(
        """
        CREATE TEMP TRIGGER refuses BEFORE INSERT ON records WHEN NEW.change = 0
          BEGIN SELECT RAISE(ABORT, 'refused'); END
        """)
      #expect(fault { try importState(line, into: target.authenticator, replacing: true) } == .interrupted)
      #expect(try target.authenticator.waitingRecords(of: "alice").isEmpty)
      try database.run("DROP TRIGGER refuses")
      try importState(line, into: target.authenticator, replacing: true)
      #expect(try target.code("alice", with: pin("1357")) == "162583")
    }
  }
}
