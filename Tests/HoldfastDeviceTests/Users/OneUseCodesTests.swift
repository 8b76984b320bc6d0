import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// The owner's codes, from their making to their use at a connection.
@Suite struct OneUseCodesTests {
  @Test func `a user is activated, and their codes are good from then on`() throws {
    let device = try TestDevice()
    device.requireCodes()
    var visitor = TestVisitor()
    #expect(try visitor.use(try device.ledger.issue(), at: device.connect()))
    let prover = try device.prover()
    let otp = try password(0, secret: try #require(visitor.secrets[.otp]))
    let seal = try counterSeal(0, "lock", secret: try #require(visitor.secrets[.seal]))
    #expect(try device.connect().round(prover, otp: otp).status == .accepted)
    #expect(try device.connect().round(prover, "lock", seal: seal).status == .accepted)
    #expect(try device.connect().round(prover, otp: otp).status == .otpRejected)
    let id = try #require(try device.record()).id
    let hasHostSecret = try device.ledger.read { (tables) throws(DatabaseError) in
      let secret = try tables.secret(.host, of: id)
      return secret != nil
    }
    #expect(hasHostSecret)
  }

  @Test func `a code is good for ten minutes and one use`() throws {
    for (seconds, isGood) in [(UInt64(0), true), (599, true), (600, false), (86_400, false)] {
      let device = try TestDevice()
      let text = try device.ledger.issue()
      device.clock.seconds = testTime + seconds
      var visitor = TestVisitor()
      #expect(try visitor.use(text, at: device.connect()) == isGood)
      #expect(try visitor.use(text, at: device.connect(number: 2)) == false && visitor.status == .otpRejected)
      #expect(try device.ledger.users().count == (isGood ? 1 : 0))
    }
  }

  @Test func `a clock that goes back makes no code live longer than its floor allows`() throws {
    let device = try TestDevice()
    let text = try device.ledger.issue()
    try device.ledger.moveClockFloor(to: testTime + 600, realClock: testTime)
    device.clock.seconds = testTime
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: device.connect()) == false)
  }

  @Test func `a code that ends between grant and confirmation makes nobody a user`() throws {
    let device = try TestDevice()
    let text = try device.ledger.issue()
    let found = try device.ledger.read { (tables) throws(DatabaseError) in try tables.code(at: 0)?.id }
    let id = try #require(found)
    let secrets = UserSecrets(otp: Secret<32>(), seal: Secret<32>(), host: Secret<32>())
    func activates(_ id: UInt64, at time: UInt64) throws -> Bool {
      try device.ledger.activate(id, secrets, realClock: time) { $0.activatedUser(realClock: time) } != nil
    }
    #expect(try !activates(id, at: testTime + 600))
    #expect(try device.ledger.unlock(id, realClock: testTime) { $0.unlockedUser(realClock: testTime) } == nil)
    #expect(try !activates(id + 1, at: testTime))
    #expect(try device.ledger.users().isEmpty)
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: device.connect()))
    #expect(try !activates(id, at: testTime))
  }

  @Test func `a newer code takes the place of an older one of the same user and purpose`() throws {
    let device = try TestDevice()
    let first = try device.ledger.issue(seed: 1)
    let second = try device.ledger.issue(seed: 2)
    let other = try device.ledger.issue(bob, seed: 3)
    var visitor = TestVisitor()
    #expect(try visitor.use(first, at: device.connect()) == false)
    #expect(try visitor.use(other, at: device.connect()))
    #expect(try visitor.use(second, at: device.connect()))
    #expect(try device.ledger.users().map(\.name) == [ann, bob])
  }

  @Test func `sixty-four codes may wait, and those that are out of time make room`() throws {
    let device = try TestDevice()
    for number in 0..<64 { _ = try device.ledger.issue(BoundedText("user \(number)")!, seed: UInt64(number)) }
    #expect(throws: LedgerFault.tooManyCodes) { _ = try device.ledger.issue(ann, seed: 99) }
    _ = try device.ledger.issue("user 7", seed: 98)
    let last = try device.ledger.issue(ann, realClock: testTime + 600, seed: 100)
    device.clock.seconds = testTime + 600
    var visitor = TestVisitor()
    #expect(try visitor.use(last, at: device.connect()))
    let count = try device.ledger.read { (tables) throws(DatabaseError) in try tables.codeCount() }
    #expect(count == 0)
  }

  @Test func `the last of sixty-four codes is found`() throws {
    let device = try TestDevice()
    var texts: [String] = []
    for number in 0..<64 { texts.append(try device.ledger.issue(BoundedText("user \(number)")!, seed: UInt64(number))) }
    var visitor = TestVisitor()
    #expect(try visitor.use(texts[63], at: device.connect()))
    #expect(try visitor.use(texts[0], at: device.connect()))
    #expect(try device.ledger.users().map { $0.name.description } == ["user 0", "user 63"])
  }

  @Test func `a code that replaces a user does so when it is used, and not before`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    let text = try device.ledger.issue(replaces: true)
    let prover = try device.prover()
    #expect(try device.connect().round(prover, otp: try password(0)).status == .accepted)
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: device.connect()))
    #expect(try device.connect().round(prover, otp: try password(1)).status == .otpRejected)
    let otp = try password(0, secret: try #require(visitor.secrets[.otp]))
    #expect(try device.connect().round(prover, otp: otp).status == .accepted)
  }

  @Test func `a code that waits is void once the user is added otherwise, or removed`() throws {
    let device = try TestDevice()
    let first = try device.ledger.issue()
    try device.add()
    var visitor = TestVisitor()
    #expect(try visitor.use(first, at: device.connect()) == false)
    let second = try device.ledger.issue(replaces: true, seed: 5)
    #expect(try device.ledger.removeUser(ann, realClock: testTime))
    #expect(try visitor.use(second, at: device.connect()) == false)
    let third = try device.ledger.issue(seed: 6)
    // There is no user yet: it is the code that is taken back.
    #expect(try device.ledger.removeUser(ann, realClock: testTime))
    #expect(try visitor.use(third, at: device.connect()) == false)
    #expect(try device.ledger.users().isEmpty)
  }

  @Test func `an unlocking code lets a locked user try again, once, and is of no use to others`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    try device.add(bob)
    let prover = try device.prover()
    #expect(throws: LedgerFault.unknownUser) { _ = try device.ledger.issueUnlocking(BoundedText("eve")) }
    for user in [ann, bob] {
      for _ in 0..<5 { _ = try device.connect().round(prover, otp: UserCode(user: user, code: BoundedText("000000"))) }
    }
    #expect(try device.connect().round(prover, otp: try password(0)).status == .lockedOut)
    let text = try device.ledger.issueUnlocking()
    #expect(try device.connect().round(prover, otp: try password(0)).status == .lockedOut)
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: device.connect()) == false && visitor.status == .otpRejected)
    #expect(try visitor.use(text, for: .unlock, at: device.connect()))
    #expect(try visitor.use(text, for: .unlock, at: device.connect()) == false)
    #expect(try device.connect().round(prover, otp: try password(0)).status == .accepted)
    #expect(try device.connect().round(prover, otp: try password(0, user: bob)).status == .lockedOut)
  }

  @Test func `an unlocking code of a user who was replaced unlocks nobody`() throws {
    let device = try TestDevice()
    try device.add()
    let text = try device.ledger.issueUnlocking()
    try device.add(replaces: true)
    var visitor = TestVisitor()
    #expect(try visitor.use(text, for: .unlock, at: device.connect()) == false)
  }

  @Test func `a code of one device is refused by another`() throws {
    let device = try TestDevice()
    let other = try TestDevice(seed: 2)
    let text = try device.ledger.issue(seed: 1)
    _ = try other.ledger.issue(seed: 2)
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: other.connect()) == false)
    #expect(try visitor.use(text, at: device.connect()))
  }

  @Test(arguments: ["users", "accounts", "audit", "codes"])
  func `a ledger that cannot be written activates and unlocks nobody`(table: String) throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add(bob)
    let text = try device.ledger.issue()
    let unlocking = try device.ledger.issueUnlocking(bob)
    switch table {
    case "users":
      try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON users BEGIN SELECT raise(ABORT, ''); END")
    case "accounts":
      try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON accounts BEGIN SELECT raise(ABORT, ''); END")
    case "codes":
      try device.tamper("CREATE TRIGGER fault BEFORE DELETE ON codes BEGIN SELECT raise(ABORT, ''); END")
    default:
      try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON audit BEGIN SELECT raise(ABORT, ''); END")
    }
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: device.connect()) == false && visitor.status == .internal)
    #expect(try device.record() == nil)
    let isUnlocked = try visitor.use(unlocking, for: .unlock, at: device.connect())
    #expect(isUnlocked == ["users", "accounts"].contains(table))
    try device.tamper("DROP TRIGGER fault")
    #expect(try visitor.use(text, at: device.connect()))
  }

  @Test func `an attempt that cannot be recorded is not compared`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    try device.tamper("CREATE TRIGGER fault BEFORE UPDATE ON users BEGIN SELECT raise(ABORT, ''); END")
    #expect(try device.connect().round(try device.prover(), otp: try password(0)).status == .internal)
    #expect(device.lock.current == .locked)
    try device.tamper("DROP TRIGGER fault")
    #expect(try device.record()?.failureCount == 0)
    #expect(try device.connect().round(try device.prover(), otp: try password(0)).status == .accepted)
  }
}
