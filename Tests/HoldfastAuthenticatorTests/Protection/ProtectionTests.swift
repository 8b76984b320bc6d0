import HoldfastCore
import TestSupport
import Testing

import HoldfastAuthenticator

@Suite struct ProtectionTests {
  let test: TestAuthenticator

  init() throws {
    test = try TestAuthenticator()
    let records = [
      NewRecord(secret: rfcSecret), NewRecord("alice", 2, .seal, .usualSeal, secret: randomSecret),
      NewRecord("alice", 3, .host, .ocra("OCRA-1:HOTP-SHA256-8:QH16"), secret: rfcSecret.reversed()),
    ]
    try test.add(records, protection: pin("1357"))
  }

  private func change(
    _ index: Int? = nil, from old: borrowing ProtectionSecret, to new: borrowing ProtectionSecret, seed: UInt64 = 77
  ) throws -> UndoCode {
    var random = TestRandom(state: seed)
    let record = try test.authenticator.record(user: "alice", index: index, purpose: .otp)
    let code = try test.authenticator.prepareChange(of: record, random: &random)
    try test.authenticator.change(record, from: old, to: new, under: code, random: &random)
    return code
  }

  private func seal(with protector: borrowing ProtectionSecret) throws -> String {
    let record = try test.authenticator.record(purpose: .seal)
    let request = try SealRequest(command: "open-safe", parameters: [])
    return try test.authenticator.seal(request, for: record, with: protector, clock: TestClock()).text
  }

  @Test func `a new PIN serves all records that shared the old one, and the host's needs none`() throws {
    let sealBefore = try seal(with: pin("1357"))
    _ = try change(from: pin("1357"), to: pin("2468"))
    #expect(try test.code(with: pin("2468")) == "755224")
    #expect(try seal(with: pin("2468")) == sealBefore)
    #expect(try test.authenticator.records().map(\.protection) == [.pin, .pin, .none])
    #expect(try test.authenticator.records().map(\.change) == [.open, .open, .none])
    #expect(try test.code(with: pin("1357")) != "287082")
  }

  @Test func `a mistyped old PIN is undone with the code that was shown`() throws {
    let code = try change(from: pin("1353"), to: pin("2468"))
    #expect(try test.code(with: pin("2468")) != "755224")
    try test.authenticator.undoChange(user: "alice", under: code)
    #expect(try test.code(with: pin("1357")) == "287082")
    #expect(try test.authenticator.records().allSatisfy { $0.change == .none })
    #expect(fault { try test.authenticator.undoChange(user: "alice", under: code) } == .noChange)
  }

  @Test func `another undo code does nothing`() throws {
    _ = try change(from: pin("1353"), to: pin("2468"))
    var random = TestRandom(state: 4)
    let other = try UndoCode(random: &random)
    #expect(fault { try test.authenticator.undoChange(user: "alice", under: other) } == .wrongUndoCode)
    #expect(try test.authenticator.records().map(\.change) == [.open, .open, .none])
  }

  @Test func `once a change is confirmed the old secret is gone, and another change may come`() throws {
    let code = try change(from: pin("1357"), to: pin("2468"))
    #expect(fault { _ = try change(from: pin("2468"), to: pin("1357")) } == .changeOpen)
    #expect(try test.authenticator.confirmProtection(user: "alice", index: 2))
    #expect(try !test.authenticator.confirmProtection(user: "alice"))
    #expect(fault { try test.authenticator.undoChange(user: "alice", under: code) } == .noChange)
    _ = try change(from: pin("2468"), to: key(9))
    #expect(try test.code(with: key(9)) == "755224")
    #expect(try test.authenticator.records().map(\.protection) == [.key, .key, .none])
    try test.authenticator.confirmProtection(user: "alice")
    _ = try change(from: key(9), to: .none)
    #expect(try test.code() == "287082")
    try test.authenticator.confirmProtection(user: "alice")
    _ = try change(from: .none, to: pin("1357"))
    #expect(try test.code(with: pin("1357")) == "359152")
  }

  @Test func `a code of the new PIN that the device has accepted confirms a change, and none from before does`() throws
  {
    #expect(try test.code(with: pin("1357")) == "755224")
    let code = try change(from: pin("1357"), to: pin("2468"))
    func synchronise(otpNext: UInt64) throws -> [ChangeProgress] {
      try test.authenticator.synchronise(
        user: "alice", offsetSeconds: nil, otpNext: otpNext, sealNext: nil, now: testTime)
      return try test.authenticator.records().map(\.change)
    }
    #expect(try synchronise(otpNext: 1) == [.open, .open, .none])
    #expect(try test.code(with: pin("2468")) == "287082")
    #expect(try synchronise(otpNext: 1) == [.open, .open, .none])
    #expect(try synchronise(otpNext: 2) == [.none, .none, .none])
    #expect(fault { try test.authenticator.undoChange(user: "alice", under: code) } == .noChange)
  }

  @Test func `a code that another copy of the folder showed confirms no change, however often one asks`() throws {
    #expect(try test.code(with: pin("1357")) == "755224")
    _ = try change(from: pin("1357"), to: pin("2468"))
    func synchronise(otpNext: UInt64) throws -> ChangeProgress {
      try test.authenticator.synchronise(
        user: "alice", offsetSeconds: nil, otpNext: otpNext, sealNext: nil, now: testTime)
      return try test.authenticator.record(user: "alice", purpose: .otp).change
    }
    // The other copy has the old PIN, and showed the codes up to number 4.
    for _ in 0..<3 { #expect(try synchronise(otpNext: 5) == .open) }
    _ = try test.code(with: pin("2468"))
    #expect(try synchronise(otpNext: 5) == .open)
    #expect(try synchronise(otpNext: 6) == .none)
  }

  @Test func `a PIN that breaks the rules is not taken`() throws {
    #expect(fault { _ = try change(from: pin("1357"), to: pin("1985")) } == .weakPIN(.year))
    #expect(try test.authenticator.records().map(\.change) == [.prepared, .prepared, .none])
    #expect(try test.code(with: pin("1357")) == "755224")
    _ = try change(from: pin("1357"), to: pin("2468"))
    #expect(try test.code(with: pin("2468")) == "287082")
  }

  @Test func `records that came at another time have a PIN of their own`() throws {
    try test.add([NewRecord("alice", 4, .otp, .hotp(.sha1, .six))], protection: pin("8642"))
    let first = try test.authenticator.record(user: "alice", index: 1, purpose: .otp)
    var random = TestRandom(state: 8)
    let code = try test.authenticator.prepareChange(of: first, random: &random)
    try test.authenticator.change(first, from: pin("1357"), to: pin("2468"), under: code, random: &random)
    #expect(try test.code("alice", index: 4, with: pin("8642")) == "755224")
    #expect(try test.authenticator.records().map(\.change) == [.open, .open, .none, .none])
  }

  @Test func `an undo code undoes its own change, and leaves another one open`() throws {
    try test.add([NewRecord("alice", 4, .otp, .hotp(.sha1, .six))], protection: pin("8642"))
    let code = try change(1, from: pin("1353"), to: pin("2468"))
    _ = try change(4, from: pin("8642"), to: pin("7391"), seed: 78)
    try test.authenticator.undoChange(user: "alice", under: code)
    #expect(try test.authenticator.records().map(\.change) == [.none, .none, .none, .open])
    #expect(try test.code("alice", index: 1, with: pin("1357")) == "755224")
    #expect(try test.code("alice", index: 4, with: pin("7391")) == "755224")
  }

  @Test func `if the old secrets cannot be erased from the disk, they are put back, and the old PIN serves`() throws {
    let database = test.authenticator.tables.database
    try database.run(
      "CREATE TEMP TRIGGER refuses BEFORE UPDATE ON erasures BEGIN SELECT RAISE(ABORT, 'refused'); END")
    #expect(fault { _ = try change(from: pin("1357"), to: pin("2468")) } == .corrupt)
    #expect(try test.authenticator.records().map(\.change) == [.prepared, .prepared, .none])
    #expect(try test.code(with: pin("1357")) == "755224")
    try database.run("DROP TRIGGER refuses")
    _ = try change(from: pin("1357"), to: pin("2468"))
    #expect(try test.code(with: pin("2468")) == "287082")
  }

  @Test func `a counter that moved while a change was open stays where it is`() throws {
    let code = try change(from: pin("1357"), to: pin("2468"))
    for _ in 0..<3 { _ = try test.code(with: pin("2468")) }
    try test.authenticator.undoChange(user: "alice", under: code)
    #expect(try test.code(with: pin("1357")) == "969429")
  }

  @Test func `what nobody prepared is not changed`() throws {
    let record = try test.authenticator.record(user: "alice", purpose: .otp)
    var random = TestRandom(state: 8)
    let code = try UndoCode(random: &random)
    #expect(
      fault {
        try test.authenticator.change(record, from: pin("1357"), to: pin("2468"), under: code, random: &random)
      } == .noChange)
    _ = try test.authenticator.prepareChange(of: record, random: &random)
    #expect(
      fault {
        try test.authenticator.change(record, from: pin("1357"), to: pin("2468"), under: code, random: &random)
      } == .wrongUndoCode)
    #expect(fault { try test.authenticator.confirmProtection(user: "bob") } == .unknownRecord)
  }
}
