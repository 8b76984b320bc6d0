import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastFirmware

/// A board without a clock: its time is the clock floor and what has passed since, within one start.
@Suite struct RunningTimeTests {
  private let firmware: TestFirmware

  init() throws {
    firmware = try TestFirmware()
    firmware.clock.seconds = nil
  }

  private func machine(bootCount: UInt64 = 1) throws -> TestMachine<TestStore> {
    try TestMachine(firmware.open(), of: firmware, bootCount: bootCount)
  }

  private func clock(_ machine: TestMachine<TestStore>) throws -> UInt64? {
    let bytes = try machine.challenge()
    return try Challenge(bytes.span).clock
  }

  @Test func `M1 tells the time that has passed, and the floor stays`() throws {
    let machine = try machine()
    #expect(try clock(machine) == testTime)
    firmware.clock.advance(milliseconds: 999)
    #expect(try clock(machine) == testTime)
    firmware.clock.advance(milliseconds: 1)
    #expect(try clock(machine) == testTime + 1)
    firmware.clock.advance(milliseconds: 3_600_000)
    #expect(try clock(machine) == testTime + 3601)
    #expect(try machine.round(try firmware.prover()).status == .accepted)
    #expect(machine.withStore { $0.state.clockFloor } == testTime)
    // A token that was issued later than that is news; one that was issued earlier takes nothing away.
    for (issued, expected) in [(3000, 3601), (5000, 5000)] as [(UInt64, UInt64)] {
      let fresh = try firmware.prover { ($0.issuedAt, $0.expires) = (testTime + issued, testTime + 90_000) }
      #expect(try machine.round(fresh).status == .accepted)
      #expect(machine.withStore { $0.state.clockFloor } == testTime + issued)
      #expect(try clock(machine) == testTime + expected)
    }
    firmware.clock.advance(milliseconds: 10_000)
    #expect(try clock(machine) == testTime + 5010)
  }

  @Test func `a year and more passes as it should`() throws {
    let machine = try machine()
    _ = try clock(machine)
    for month in 1...30 as ClosedRange<UInt64> {
      firmware.clock.advance(milliseconds: 30 * 86_400_000)
      #expect(try clock(machine) == testTime + month * 30 * 86_400)
    }
  }

  @Test func `a token expires as time passes, and an iat may still be far ahead of it`() throws {
    let machine = try machine()
    let short = try firmware.prover { $0.expires = testTime + 100 }
    #expect(try machine.round(short).status == .accepted)
    firmware.clock.advance(milliseconds: 99_999)
    #expect(try machine.round(short).status == .accepted)
    firmware.clock.advance(milliseconds: 1)
    #expect(try machine.round(short).status == .tokenExpired)
    let future = try firmware.prover {
      ($0.issuedAt, $0.expires) = (testTime + 399 * 86_400, testTime + 400 * 86_400)
    }
    #expect(try machine.round(future).status == .accepted)
  }

  @Test func `a lockout of 30 s ends after 30 s`() throws {
    try firmware.addUser()
    let machine = try machine()
    firmware.clock.advance(milliseconds: 5000)
    let prover = try firmware.prover()
    let wrong = UserCode(user: ann, code: BoundedText("000000"))
    for _ in 0..<5 { #expect(try machine.round(prover, "configure", otp: wrong).status == .otpRejected) }
    let right = try password(0)
    firmware.clock.advance(milliseconds: 29_000)
    let locked = try machine.round(prover, "configure", otp: right)
    #expect(locked.status == .lockedOut && locked.notice?.retryAfterSeconds == 1)
    firmware.clock.advance(milliseconds: 1000)
    #expect(try machine.round(prover, "configure", otp: right).status == .accepted)
  }

  @Test func `a lockout goes on where it was after the device started again`() throws {
    try firmware.addUser()
    var machine = try machine()
    let prover = try firmware.prover()
    _ = try clock(machine)
    firmware.clock.advance(milliseconds: 500_000)
    let wrong = UserCode(user: ann, code: BoundedText("000000"))
    for _ in 0..<5 { #expect(try machine.round(prover, "configure", otp: wrong).status == .otpRejected) }
    machine = try self.machine(bootCount: 2)
    let right = try password(0)
    #expect(try machine.round(prover, "configure", otp: right).notice?.retryAfterSeconds == 30)
    firmware.clock.advance(milliseconds: 30_000)
    #expect(try machine.round(prover, "configure", otp: right).status == .accepted)
  }

  /// The owner's machine has a clock, and the device's floor is months behind it.
  @Test(arguments: [0, 100 * 86_400] as [UInt64])
  func `an owner's code runs out after ten minutes`(ahead: UInt64) throws {
    for (wait, isTaken) in [(599_999, true), (600_000, false)] as [(UInt64, Bool)] {
      var store = try firmware.open()
      let code = try store.issue(.activation, to: ann, otp: hotpMethod, seed: 5, realClock: testTime + ahead)
      let machine = try machine()
      #expect(try clock(machine) == testTime + ahead)
      firmware.clock.advance(milliseconds: wait)
      var visitor = TestVisitor()
      let challenge = try machine.challenge()
      let taken = try visitor.use(code, for: .activation, seed: 3, challenge: challenge) { machine.respond($0) }
      #expect(taken == isTaken)
    }
  }

  @Test func `a challenge for a seal is good for 300 s, and may be replaced after 60`() throws {
    let machine = try machine()
    let secrets = try activated(machine)
    let prover = try firmware.prover()
    func ask() throws -> Status {
      try machine.round(prover, "host-code", parameters: ["ann", "0123456789abcdef"]).status
    }
    func sealed() throws -> Status {
      let record = try #require(try machine.withStore { try $0.user(named: ann) })
      let challenge = Array(try #require(record.challenge).bytes)
      let code = try seal(challengeSealMethod, challenge: challenge, secret: secrets[.seal] ?? [])
      return try machine.round(prover, "lock", seal: code).status
    }
    #expect(try ask() == .accepted)
    firmware.clock.advance(milliseconds: 59_000)
    #expect(try ask() == .busy)
    firmware.clock.advance(milliseconds: 1000)
    #expect(try ask() == .accepted)
    firmware.clock.advance(milliseconds: 299_000)
    #expect(try sealed() == .accepted)
    #expect(try ask() == .accepted)
    firmware.clock.advance(milliseconds: 300_000)
    #expect(try sealed() == .sealRejected)
  }

  private func activated(_ machine: TestMachine<TestStore>) throws -> [CodePurpose: [UInt8]] {
    let code = try machine.withStore {
      try $0.issue(.activation, to: ann, otp: hotpMethod, seal: challengeSealMethod, seed: 5, realClock: nil)
    }
    var visitor = TestVisitor()
    let challenge = try machine.challenge()
    #expect(try visitor.use(code, for: .activation, seed: 3, challenge: challenge) { machine.respond($0) })
    return visitor.secrets
  }

  @Test func `a time that the owner's machine had wrong by far is not believed`() throws {
    var store = try firmware.open()
    try store.note(.issuerTrusted(KeyID()), realClock: testTime + 401 * 86_400)
    #expect(try clock(try machine()) == testTime)
    // 400 days are still believed, and not a second more.
    for (ahead, believed) in [(34_560_001, 0), (34_560_000, 34_560_000)] as [(UInt64, UInt64)] {
      store = try firmware.open()
      try store.note(.issuerTrusted(KeyID()), realClock: testTime + ahead)
      #expect(try clock(try machine()) == testTime + believed)
    }
    // Whatever the owner does next, by a clock that is right, is the newest word on it.
    store = try firmware.open()
    try store.note(.issuerTrusted(KeyID()), realClock: testTime + 300 * 86_400)
    #expect(try clock(try machine()) == testTime + 300 * 86_400)
    store = try firmware.open()
    try store.note(.issuerTrusted(KeyID()), realClock: testTime + 5)
    #expect(try clock(try machine()) == testTime + 5)
  }
}

extension TestFirmware {
  fileprivate func addUser() throws {
    var store = try open()
    try store.add(ann, otp: hotpMethod, seal: counterSealMethod, secret: usersSecret, realClock: nil)
  }
}
