import HoldfastCore
import HoldfastOpenSSL
import Synchronization
import TestSupport
import Testing

import HoldfastAuthenticator

@Suite struct CodesTests {
  let test: TestAuthenticator

  init() throws {
    test = try TestAuthenticator()
  }

  @Test func `codes from a counter are those of RFC 4226, each once, and a restart brings none back`() throws {
    try test.add(NewRecord())
    let expected = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]
    for (index, code) in expected.enumerated() {
      let authenticator = try test.again()
      let record = try authenticator.record(purpose: .otp)
      #expect(record.nextCounter == UInt64(index))
      #expect(try authenticator.code(for: record, with: .none, clock: TestClock(seconds: nil)).text == code)
    }
  }

  @Test(
    arguments: [(59, "94287082", 1), (1_111_111_109, "07081804", 1), (2_000_000_000, "69279037", 10)]
      as [(UInt64, String, UInt64)])
  func `codes from the time are those of RFC 6238, and say how long they are good for`(
    seconds: UInt64, code: String, remaining: UInt64
  ) throws {
    try test.add(NewRecord("alice", 1, .otp, .totp))
    let record = try test.authenticator.record(purpose: .otp)
    let shown = try test.authenticator.code(for: record, with: .none, clock: TestClock(seconds: seconds))
    #expect(shown == Code(text: code, secondsRemaining: remaining))
    // The same step may be shown again.
    #expect(try test.code(at: seconds) == code)
    #expect(try test.authenticator.record(purpose: .otp).lastTimeStep == seconds / 30)
  }

  @Test func `the last time step never goes back`() throws {
    try test.add(NewRecord("alice", 1, .otp, .totp))
    _ = try test.code(at: 29)
    #expect(try test.authenticator.record(purpose: .otp).lastTimeStep == 0)
    _ = try test.code(at: 2_000_000_000)
    _ = try test.code(at: 59)
    #expect(try test.authenticator.record(purpose: .otp).lastTimeStep == 2_000_000_000 / 30)
  }

  @Test func `the device's clock counts, as far as it is known`() throws {
    try test.add(NewRecord("alice", 1, .otp, .totp))
    try test.authenticator.synchronise(user: "alice", offsetSeconds: -100, otpNext: nil, sealNext: nil, now: testTime)
    #expect(try test.code(at: 159) == "94287082")
    #expect(fault { _ = try test.code(at: 99) } == .clockOutOfRange)
  }

  @Test func `a clock before 1970 or after 2106 makes no code`() throws {
    try test.add(NewRecord("alice", 1, .otp, .totp))
    #expect(fault { _ = try test.code(at: nil) } == .clockOutOfRange)
    #expect(fault { _ = try test.code(at: 1 << 32) } == .clockOutOfRange)
    #expect(fault { _ = try test.code(at: .max) } == .clockOutOfRange)
    #expect(try test.code(at: (1 << 32) - 1).utf8.count == 8)
    #expect(try test.code(at: 0).utf8.count == 8)
    try test.authenticator.synchronise(user: "alice", offsetSeconds: 1, otpNext: nil, sealNext: nil, now: testTime)
    #expect(fault { _ = try test.code(at: (1 << 32) - 1) } == .clockOutOfRange)
  }

  @Test func `beyond what the device looks at there is no code, but two in a row, until it is synchronised`() throws {
    try test.add(NewRecord(window: 3))
    for code in ["755224", "287082", "359152"] { #expect(try test.code() == code) }
    #expect(fault { _ = try test.code() } == .notSynchronised)
    #expect(try test.authenticator.record(purpose: .otp).nextCounter == 3)
    let record = try test.authenticator.record(purpose: .otp)
    let pair = try test.authenticator.codePair(for: record, with: .none, clock: TestClock())
    #expect(pair.map(\.text) == ["969429", "338314"])
    #expect(try test.authenticator.record(purpose: .otp).nextCounter == 5)
    try test.authenticator.synchronise(user: "alice", offsetSeconds: nil, otpNext: 5, sealNext: nil, now: testTime)
    #expect(try test.code() == "254676")
  }

  @Test func `two codes in a row from the time are this step's and the next one's`() throws {
    try test.add(NewRecord("alice", 1, .otp, .totp))
    let record = try test.authenticator.record(purpose: .otp)
    let pair = try test.authenticator.codePair(for: record, with: .none, clock: TestClock(seconds: 29))
    #expect(pair[1] == Code(text: "94287082", secondsRemaining: 31))
    #expect(pair[0].secondsRemaining == 1)
    #expect(try test.authenticator.record(purpose: .otp).lastTimeStep == 1)
  }

  @Test func `the last counter of all gives no code`() throws {
    try test.add(NewRecord(next: maximumInteger - 1))
    #expect(fault { _ = try test.code() } == .counterExhausted)
  }

  @Test func `an OCRA account takes a question, and no other does`() throws {
    try test.add(NewRecord("alice", 1, .otp, .ocra("OCRA-1:HOTP-SHA1-6:QN08")), NewRecord("bob", 1))
    let clock = TestClock(seconds: nil)
    let (alice, bob) = (
      try test.authenticator.record(user: "alice", purpose: .otp),
      try test.authenticator.record(user: "bob", purpose: .otp)
    )
    // RFC 6287 appendix C.1.
    for (question, code) in [("00000000", "237653"), ("11111111", "243178"), ("99999999", "294470")] {
      #expect(try test.authenticator.code(for: alice, with: .none, challenge: question, clock: clock).text == code)
    }
    for question in [nil, "", "1234567x", "123456789"] {
      #expect(
        fault { _ = try test.authenticator.code(for: alice, with: .none, challenge: question, clock: clock) }
          == .badQuestion)
    }
    #expect(
      fault { _ = try test.authenticator.code(for: bob, with: .none, challenge: "1", clock: clock) } == .badQuestion)
    #expect(fault { _ = try test.authenticator.codePair(for: alice, with: .none, clock: clock) } == .unsuitableMethod)
  }

  @Test func `the question of an account of a device is the challenge of that device`() throws {
    let device = DeviceID(filledWith: 7)
    func record(_ index: Int, _ suite: String, of deviceID: DeviceID?) throws -> Record {
      let secret = Array(randomSecret.dropLast(index))
      let credential = Credential(user: "alice", method: .ocra(suite), secret: SecretBytes(copying: secret.span))
      try test.add(NewRecord(index: index, purpose: .otp, credential: credential, deviceID: deviceID))
      return try test.authenticator.record(user: "alice", index: index, purpose: .otp)
    }
    func code(_ record: Record, _ challenge: String?) throws -> String {
      try test.authenticator.code(for: record, with: .none, challenge: challenge, clock: TestClock(seconds: nil)).text
    }
    // 0x8000000000000001 is 9223372036854775809.
    let numeric = try record(1, "OCRA-1:HOTP-SHA1-6:QN08", of: device)
    #expect(try code(numeric, "8000000000000001") == code(numeric, "000000000343D001"), "both end in 54775809")
    let hexadecimal = try record(2, "OCRA-1:HOTP-SHA1-6:QH64", of: device)
    #expect(try code(hexadecimal, "00112233445566AA") == code(hexadecimal, "00112233445566aa"))
    for challenge in [nil, "", "00112233", "00112233445566aa0", "0011223344556 aa"] {
      #expect(fault { _ = try code(hexadecimal, challenge) } == .badQuestion)
    }
    let short = try record(3, "OCRA-1:HOTP-SHA1-6:QH08", of: device)
    #expect(fault { _ = try code(short, "0011223344556677") } == .badQuestion)
    let others = try record(4, "OCRA-1:HOTP-SHA1-6:QH08", of: nil)
    #expect(try code(others, "00112233").count == 6)
  }

  @Test func `the right PIN gives the right code, and a wrong one a wrong code`() throws {
    try test.add([NewRecord()], protection: pin("1357"))
    #expect(try test.code(with: pin("1357")) == "755224")
    let wrong = try test.code(with: pin("1358"))
    #expect(wrong.utf8.count == 6 && wrong != "287082")
    #expect(try test.code(with: pin("1357")) == "359152")
  }

  @Test func `what is given must be of the kind that the record is protected by`() throws {
    try test.add([NewRecord()], protection: pin("1357"))
    try test.add([NewRecord("bob")], protection: key(3))
    try test.add(NewRecord("carol"))
    #expect(fault { _ = try test.code("alice") } == .protectionMismatch(.pin))
    #expect(fault { _ = try test.code("alice", with: key(3)) } == .protectionMismatch(.pin))
    #expect(fault { _ = try test.code("bob", with: pin("1357")) } == .protectionMismatch(.key))
    #expect(fault { _ = try test.code("carol", with: pin("1357")) } == .protectionMismatch(.none))
    #expect(try test.code("bob", with: key(3)) == "755224")
    #expect(try test.code("bob", with: key(4)) != "287082")
    #expect(try test.authenticator.records().map(\.nextCounter) == [0, 2, 0])
  }

  @Test func `an external key has from 16 bytes on`() {
    func isKey(_ byteCount: Int) -> Bool {
      switch ExternalKey([UInt8](repeating: 1, count: byteCount).span) {
      case .none: false
      case .some: true
      }
    }
    #expect([15, 16, 1024, 1025].map(isKey) == [false, true, true, false])
  }

  @Test func `processes that take codes at once take different ones`() throws {
    try test.add(NewRecord())
    let path = test.path
    let codes = Mutex<[String]>([])
    let threads = (0..<4).map { _ in
      TestThread {
        guard let authenticator = try? AuthenticatorFolder.open(at: path, cost: .test) else { return }
        for _ in 0..<20 {
          guard let record = try? authenticator.record(purpose: .otp),
            let code = try? authenticator.code(for: record, with: .none, clock: TestClock())
          else { continue }
          codes.withLock { $0.append(code.text) }
        }
      }
    }
    for thread in threads { thread.join() }
    let shown = codes.withLock { $0 }
    #expect(try test.authenticator.record(purpose: .otp).nextCounter == UInt64(shown.count))
    #expect(shown.count == 80)
    #expect(Set(shown).count >= 79)
  }
}
