import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastFirmware

@Suite struct FirmwareDeviceTests {
  let firmware: TestFirmware
  let line: TestLine
  let machine = CountingMachine()
  let prover: TestProver

  init() throws {
    firmware = try TestFirmware()
    line = TestLine(clock: firmware.clock)
    prover = try firmware.prover()
  }

  private func serve(wordCount: Int? = nil) throws { try firmware.serve(line, machine, wordCount: wordCount) }

  private func statuses() -> [Status] {
    line.messages.compactMap { sent in try? VerdictMessage(sent.bytes.span).status }
  }

  /// Whether a message is an M1.
  private func isChallenge(_ message: [UInt8]) -> Bool { (try? Challenge(message.span)) != nil }

  private func answer(
    _ line: TestLine, command: String = "unlock", flaws: Flaws = [], otp: UserCode? = nil
  ) throws -> TestAnswer {
    let challenge = try #require(line.messages.last { isChallenge($0.bytes) })
    return try prover.answer(challenge.bytes, command: command, flaws: flaws, otp: otp)
  }

  @Test func `M1 comes at the start and after each M3, and an accepted command moves the machine`() throws {
    for _ in 0..<3 { line.then { $0.message(try answer($0).message) } }
    try serve()
    let messages = line.messages.map(\.bytes)
    #expect(messages.map(isChallenge) == [true, false, true, false, true, false, true])
    #expect(Set(messages).count == messages.count)
    #expect(statuses() == [.accepted, .accepted, .accepted])
    #expect(machine.performed.map { $0.description } == ["unlock", "unlock", "unlock"])
    let answered = line.notices.filter { $0 == .answered(.accepted) }.count
    let answering = line.notices.filter { $0 == .answering }.count
    #expect(answered == 3 && answering == 3 && line.notices.count == 7)
    #expect(line.notices.first == .started(bootCount: 1))
  }

  @Test func `M1 is sent again every 2 s, byte for byte, until something comes`() throws {
    line.then { $0.quiet(milliseconds: 5000) }
    line.then { $0.message(try answer($0).message, every: 1) }
    line.then { $0.quiet(milliseconds: 3000) }
    try serve()
    let messages = line.messages
    #expect(messages[0].bytes == messages[1].bytes && messages[1].bytes == messages[2].bytes)
    #expect(messages[1].milliseconds - messages[0].milliseconds == 2000)
    #expect(messages[2].milliseconds - messages[1].milliseconds == 2000)
    #expect(messages.map { isChallenge($0.bytes) } == [true, true, true, false, true, true])
    #expect(statuses() == [.accepted])
  }

  @Test func `a challenge that nobody answers in 30 s is refused, and another one follows, for ever`() throws {
    line.then { $0.quiet(milliseconds: 95_000) }
    try serve()
    #expect(statuses() == Array(repeating: .challengeExpired, count: 3))
    let refusals = line.messages.filter { !isChallenge($0.bytes) }
    #expect(refusals.map { $0.milliseconds - line.messages[0].milliseconds } == [30_000, 60_000, 90_000])
    #expect(refusals.allSatisfy { $0.bytes == [0x83, 3, 12, 0xf6] })
    #expect(Set(line.messages.map(\.bytes)).count == 5)
  }

  @Test func `an empty frame is answered with one and a fresh M1, and what it ended is dead`() throws {
    line.then { $0.bytes([0, 0]) }
    line.then { line in
      #expect(line.messages.map { isChallenge($0.bytes) } == [true, false, true])
      #expect(line.messages[1].bytes == [])
      #expect(line.messages[2].bytes != line.messages[0].bytes)
      line.message(try prover.answer(line.messages[0].bytes, command: "unlock").message)
    }
    line.then { $0.message(try answer($0).message) }
    line.then { $0.bytes([0, 0, 0, 0, 0, 0]) }
    try serve()
    #expect(statuses() == [.deviceMismatch, .accepted])
    #expect(line.messages.filter { $0.bytes.isEmpty }.count == 4)
    #expect(machine.performed.count == 1)
  }

  @Test(arguments: [4097, 4098, 0x8000, 0xffff]) func `a frame that is too long is dropped until a second of silence`(
    byteCount: Int
  ) throws {
    line.then {
      $0.bytes([UInt8(byteCount >> 8), UInt8(byteCount & 0xff)] + [UInt8](repeating: 1, count: 70_000), every: 3)
    }
    line.then { $0.quiet(milliseconds: 500) }
    line.then { $0.bytes([0, 0]) }
    line.then { $0.quiet(milliseconds: 1500) }
    line.then { $0.message(try answer($0).message) }
    try serve()
    #expect(line.messages.map { isChallenge($0.bytes) } == [true, true, false, true])
    #expect(line.messages[1].bytes != line.messages[0].bytes)
    #expect(line.messages[1].milliseconds >= line.messages[0].milliseconds + 210_000 + 1000)
    #expect(statuses() == [.accepted])
  }

  @Test func `a frame that ends too soon is dropped, at whichever byte, and a fresh M1 follows`() throws {
    let whole = try answerToNothing()
    for byteCount in 1..<whole.count {
      line.then { $0.bytes(Array(whole[..<byteCount])) }
      line.then { $0.quiet(milliseconds: 1500) }
    }
    line.then { $0.message(try answer($0).message) }
    try serve()
    #expect(line.messages.count == whole.count + 2)
    #expect(statuses() == [.accepted])
    #expect(Set(line.messages.map(\.bytes)).count == line.messages.count)
  }

  private func answerToNothing() throws -> [UInt8] {
    let message = try prover.compatibilityAnswer(nonce: Array(repeating: 1, count: 16), command: "unlock")
    return [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
  }

  @Test func `a message that is not whole in 10 s is malformed, however steadily it comes`() throws {
    line.then { $0.bytes([0x0f, 0xff] + [UInt8](repeating: 0, count: 30), every: 900) }
    line.then { $0.quiet(milliseconds: 1100) }
    line.then { $0.message(try answer($0).message) }
    try serve()
    #expect(statuses() == [.malformed, .accepted])
    #expect(line.messages.first { !isChallenge($0.bytes) }?.bytes == [0x83, 3, 13, 0xf6])
  }

  @Test func `after 10 s no byte of a message is taken, although it is there`() throws {
    line.then { line in
      let message = try answer(line).message
      let frame = [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
      line.bytes(Array(frame[..<10]), every: 1000)
      line.bytes(Array(frame[10...].dropLast(2)), after: 9000)
      line.bytes(Array(frame.suffix(2)), after: 10_000)
    }
    line.then { $0.quiet(milliseconds: 1100) }
    line.then { $0.message(try answer($0).message) }
    try serve()
    #expect(statuses() == [.malformed, .accepted])
    #expect(machine.performed.count == 1)
  }

  @Test func `a message as long as any that there is, just in time, is taken`() throws {
    line.then { $0.message([UInt8](repeating: 0, count: 4096), every: 2) }
    line.then { $0.message(try answer($0).message, every: 15) }
    try serve()
    #expect(statuses() == [.malformed, .accepted])
  }

  @Test(arguments: 0..<6 as Range<UInt64>) func `the device outlives garbage, and then serves`(seed: UInt64) throws {
    var generator = SeededGenerator(seed)
    var garbage = (0..<100_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    // Short frames of garbage, too.
    if seed % 2 == 0 { for index in garbage.indices where index % 7 == 0 { garbage[index] = 0 } }
    line.then { $0.bytes(garbage, every: seed < 3 ? 0 : 40) }
    line.then { $0.quiet(milliseconds: 40_000) }
    line.then { $0.message(try answer($0).message) }
    try serve()
    #expect(statuses().last == .accepted)
    #expect(statuses().filter { $0 == .accepted }.count == 1)
    #expect(machine.performed.count == 1)
  }

  @Test func `each prefix of a good answer, as a frame of its own, is refused`() throws {
    for byteCount in stride(from: 1, to: try prover.answer(someChallenge(), command: "unlock").message.count, by: 1) {
      line.then { $0.message(Array(try answer($0).message.prefix(byteCount))) }
    }
    try serve()
    #expect(Set(statuses()) == [.malformed])
    #expect(machine.performed.isEmpty)
  }

  private func someChallenge() -> [UInt8] {
    var bytes: [UInt8] = []
    Challenge(
      deviceID: firmware.deviceID, nonce: TypedBytes(), keyID: KeyID(), required: .device, clock: nil
    ).encode(into: &bytes)
    return bytes
  }

  @Test func `from the tenth failed proof in a minute on, each answer waits a second`() throws {
    for _ in 0..<12 { line.then { $0.message(try answer($0, flaws: .wrongDevice).message) } }
    line.then { $0.bytes([0, 0]) }
    line.then { $0.message(try answer($0).message) }
    try serve()
    #expect(statuses() == Array(repeating: .deviceMismatch, count: 12) + [.accepted])
    // An empty frame does not make it forget.
    #expect(line.pauses == [1000, 1000, 1000, 1000])
  }

  @Test func `totals of what strangers got are written down once a minute`() throws {
    for _ in 0..<8 {
      line.then { $0.message([1]) }
      line.then { $0.quiet(milliseconds: 20_000) }
    }
    try serve()
    let totals = try firmware.open().auditEntries().entries.compactMap { entry -> UInt64? in
      if case .unproved(let totals) = entry.event { return totals[.malformed] }
      return nil
    }
    #expect(totals.count == 2 && (2...8).contains(totals.reduce(0, +)), "\(totals)")
  }

  @Test func `a receipt counts if the key of the provisioned home signed it, and no other key that is trusted`() throws
  {
    let firmware = try TestFirmware(issuerCount: 2, homeRefuses: false)
    let (line, courier) = (TestLine(clock: firmware.clock), try firmware.prover())
    line.then { line in
      let challenge = try #require(line.messages.last { isChallenge($0.bytes) })
      line.message(try courier.answer(challenge.bytes, command: "status").message)
    }
    // The first issuer is the home.
    for issuer in firmware.issuers.reversed() {
      line.then { line in
        var message: [UInt8] = []
        let receipt = try firmware.receipt(firmware.open().audit, by: issuer)
        MailMessage.encode(.receipt, receipt.span, into: &message)
        line.message(message)
      }
    }
    try firmware.serve(line)
    let results = line.messages.compactMap { try? BulletinAnswer($0.bytes.span).result }
    #expect(results == [.refused, .taken])
  }

  @Test func `an activation goes on without another M1, and one that is not confirmed ends after 30 s`() throws {
    var store = try firmware.open()
    let code = try store.issue(.activation, to: ann, otp: hotpMethod, seed: 5, realClock: testTime)
    for isConfirmed in [false, true] {
      let user = try UserAtLine(code)
      line.then { try user.open($0) }
      line.then { line in
        let messages = line.messages
        #expect(!isChallenge(messages.last!.bytes))
        if isConfirmed { try user.confirm(line) } else { line.quiet(milliseconds: 31_000) }
        if !isConfirmed { line.then { #expect(isChallenge($0.messages.last!.bytes)) } }
      }
      if isConfirmed { line.then { #expect(isChallenge($0.messages.last!.bytes)) } }
    }
    try serve()
    var after = try firmware.open()
    let user = try after.user(named: ann)
    #expect(user?.accounts[.otp]?.method == hotpMethod)
    #expect(statuses().contains(.challengeExpired))
  }
}

/// A user with an activation code at the other end of a line.
private final class UserAtLine {
  private var session: ActivationSession<OpenSSLCryptography, TestRandom>

  init(_ text: String) throws {
    let bytes = Array(text.utf8)
    let code = OneUseCode(bytes.span)!
    session = ActivationSession(
      code: code, for: .activation, cryptography: OpenSSLCryptography(), random: TestRandom(state: 3))
  }

  /// Answers M1.
  func open(_ line: TestLine) throws {
    let challenge = line.messages.last!.bytes
    _ = try session.receive(challenge.span)
    line.message(session.copyOfOutgoing())
  }

  func confirm(_ line: TestLine) throws {
    let grant = line.messages.last!.bytes
    _ = try session.receive(grant.span)
    try session.confirm()
    line.message(session.copyOfOutgoing())
  }
}

extension ActivationSession where Crypto: ~Copyable, Random: ~Copyable {
  fileprivate borrowing func copyOfOutgoing() -> [UInt8] { Array(outgoing.bytes) }
}
