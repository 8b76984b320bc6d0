import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

/// The users of a small device, of which none takes anything from another.
@Suite struct FlashStoreUsersTests {
  let firmware: TestFirmware
  let machine: TestMachine<TestStore>

  init() throws {
    firmware = try TestFirmware()
    machine = try TestMachine(firmware.open(), of: firmware)
  }

  @Test func `a user whom the owner added has no secret for host codes, and gets none`() throws {
    try machine.withStore { (store: inout TestStore) throws in
      try store.add(ann, otp: hotpMethod, seal: nil, secret: usersSecret)
    }
    let verdict = try machine.round(
      try firmware.prover(), "host-code", parameters: ["ann", "0123456789abcdef"])
    #expect((verdict.status, verdict.result) == (.accepted, ""))
  }

  @Test func `a round with a code has one entry, about the comparison`() throws {
    try machine.withStore { (store: inout TestStore) throws in
      try store.add(ann, otp: hotpMethod, seal: nil, secret: usersSecret)
    }
    let (prover, before) = (try firmware.prover(), machine.withStore { $0.audit.count })
    let wrong = UserCode(user: ann, code: BoundedText("000000"))
    #expect(try machine.status(prover, "configure", otp: wrong) == .otpRejected)
    #expect(try machine.status(prover, "configure", otp: password(0)) == .accepted)
    let entries = try machine.withStore { try $0.auditEntries().entries.filter { $0.sequence > before } }
    let statuses = entries.map { if case .round(let round) = $0.event { round.status } else { nil } as Status? }
    #expect(statuses == [.otpRejected, .accepted])
  }

  @Test func `an activation uses up the user's codes, and leaves those of others`() throws {
    let users = [ann, bob]
    let codes = try machine.withStore { (store: inout TestStore) throws in
      try users.enumerated().map { index, user in
        try store.issue(.activation, to: user, otp: hotpMethod, seed: UInt64(5 + index))
      }
    }
    for (user, code) in zip(users, codes) {
      var visitor = TestVisitor()
      let challenge = try machine.challenge()
      #expect(try visitor.use(code, for: .activation, challenge: challenge) { machine.respond($0) })
      let events = try machine.withStore { try $0.auditEntries().entries.map(\.event) }
      #expect(events.last == .userActivated(user))
      let again = try machine.challenge()
      #expect(try !visitor.use(code, for: .activation, challenge: again) { machine.respond($0) })
    }
    let count = machine.withStore { $0.index.userCount }
    #expect(count == 2)
  }

  @Test func `the owner removes a user with the user's codes, and nobody else's`() throws {
    let codes = try machine.withStore { (store: inout TestStore) throws in
      [
        try store.issue(.activation, to: ann, otp: hotpMethod, seed: 5),
        try store.issue(.activation, to: bob, otp: hotpMethod, seed: 6),
      ]
    }
    for (isRemoved, name) in [(true, ann), (false, ann), (false, BoundedText<32>("nobody"))] {
      let answer = try machine.withStore { (store: inout TestStore) throws in
        try store.removeUser(name, realClock: testTime)
      }
      #expect(answer == isRemoved)
      let locked = try machine.withStore { (store: inout TestStore) throws in
        try store.lockUser(name, until: testTime + 100, realClock: testTime)
      }
      #expect(!locked)
    }
    for (code, isGood) in zip(codes, [false, true]) {
      var visitor = TestVisitor()
      let challenge = try machine.challenge()
      #expect(try visitor.use(code, for: .activation, challenge: challenge) { machine.respond($0) } == isGood)
    }
    let locked = try machine.withStore { (store: inout TestStore) throws in
      try store.lockUser(bob, until: testTime + 100, realClock: testTime)
    }
    let user = try machine.withStore { try $0.user(named: bob) }
    #expect(locked && user?.lockedUntil == testTime + 100)
  }
}
