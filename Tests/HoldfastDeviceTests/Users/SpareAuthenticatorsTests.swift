import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// Spare authenticators: the same user with other secrets, and with the same lockout.
@Suite struct SpareAuthenticatorsTests {
  private let second: BoundedText<32> = "ann#2"
  private let secret = [UInt8](repeating: 0x77, count: 32)

  /// Issues the code of a spare authenticator; gives its text.
  private func issueSpare(
    _ device: TestDevice, of user: BoundedText<32> = ann, named name: BoundedText<32>? = nil, seed: UInt64 = 5
  ) throws -> String {
    var random = TestRandom(state: seed)
    return try device.ledger.issueActivation(
      of: name ?? device.ledger.nextSpare(of: user), ByPurpose(otp: hotpMethod, seal: counterSealMethod),
      replaces: false,
      terms: ActivationTerms(main: user), realClock: testTime, random: &random
    ).text
  }

  /// A device with ann, and with a spare authenticator of hers.
  private func deviceWithSpare() throws -> (device: TestDevice, spare: TestVisitor) {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    var visitor = TestVisitor()
    #expect(try visitor.use(issueSpare(device), at: device.connect()))
    return (device, visitor)
  }

  private func sparePassword(_ position: UInt64, of visitor: TestVisitor) throws -> UserCode {
    try password(position, secret: try #require(visitor.secrets[.otp]), user: second)
  }

  private let wrong = UserCode(user: "ann#2", code: "000000")

  @Test func `codes of both authenticators are good, each with its own secret and positions`() throws {
    let (device, spare) = try deviceWithSpare()
    let prover = try device.prover { $0.user = "ann" }
    #expect(try device.connect().round(prover, otp: password(0)).status == .accepted)
    #expect(try device.connect().round(prover, otp: sparePassword(0, of: spare)).status == .accepted)
    #expect(try device.connect().round(prover, otp: sparePassword(0, of: spare)).status == .otpRejected)
    #expect(try device.connect().round(prover, otp: password(1)).status == .accepted)
    // The secret of one is no secret of the other.
    #expect(try device.connect().round(prover, otp: password(2, user: second)).status == .otpRejected)
    #expect(try device.ledger.users().map(\.main) == [nil, ann])
    let enrolled = try device.folder.users()
    #expect(enrolled.map(\.name) == [ann, second] && enrolled.map(\.spareOf) == [nil, ann])
    #expect(enrolled.map(\.otp?.nextPosition) == [2, 1] && enrolled.map(\.failureCount) == [1, 1])
    #expect(try device.connect().round(prover, "lock", seal: counterSeal(0, "lock")).status == .accepted)
  }

  /// An actuator that notes the users of commands.
  private final class NotingMachine: Actuator {
    var users: [BoundedText<32>?] = []

    func perform(
      _ request: borrowing Request, of round: borrowing AcceptedRound, result: inout ResultBuffer
    ) throws(ActuatorFailure) { users.append(round.user) }

    func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {}
  }

  @Test func `the actuator learns the user, whose code the spare's is`() throws {
    let (device, spare) = try deviceWithSpare()
    let (prover, machine) = (try device.prover { $0.user = "ann" }, NotingMachine())
    try device.folder.write(device.policy)
    var session = try device.opened().session(actuator: machine)
    for code in [try password(0), try sparePassword(0, of: spare)] {
      let answer = try prover.answer(try session.challenge(), command: "unlock", otp: code)
      let reply = session.respond(to: answer.message.span, waitedMilliseconds: 0)
      #expect(try prover.open(reply.message, after: answer).status == .accepted)
    }
    #expect(machine.users == [ann, ann])
  }

  @Test func `a token of a user accepts no spare of another user, and all codes are of one authenticator`() throws {
    let (device, spare) = try deviceWithSpare()
    try device.add(bob)
    let bobs = try device.prover { $0.user = "bob" }
    let before = try device.record()
    #expect(try device.connect().round(bobs, otp: sparePassword(0, of: spare)).status == .commandRefused)
    #expect(try device.record() == before)
    let spares = try device.prover { $0.user = "ann#2" }
    #expect(try device.connect().round(spares, otp: password(0)).status == .commandRefused)
    #expect(try device.connect().round(spares, otp: sparePassword(0, of: spare)).status == .accepted)
    device.policy.commands[BoundedText("unlock")]?.factors = [.device, .otp, .seal]
    let anns = try device.prover { $0.user = "ann" }
    let mixed = try device.connect().round(anns, otp: sparePassword(1, of: spare), seal: counterSeal(0, "unlock"))
    #expect(mixed.status == .commandRefused)
    let free = try device.prover()
    #expect(
      try device.connect().round(free, otp: sparePassword(1, of: spare), seal: counterSeal(0, "unlock")).status
        == .commandRefused)
  }

  @Test func `three authenticators have no more guesses than one, and share the lockout`() throws {
    let (device, spare) = try deviceWithSpare()
    let prover = try device.prover { $0.user = "ann" }
    // Two connections that take turns, each with another authenticator.
    for turn in 0..<5 {
      let guess = turn.isMultiple(of: 2) ? wrong : UserCode(user: ann, code: "000000")
      #expect(try device.connect(number: UInt64(turn + 1)).round(prover, otp: guess).status == .otpRejected)
    }
    #expect(try device.ledger.users().map(\.record.failureCount) == [5, 5])
    #expect(try device.connect().round(prover, otp: sparePassword(0, of: spare)).status == .lockedOut)
    #expect(try device.connect().round(prover, otp: password(0)).status == .lockedOut)
    // Neither removing a spare nor activating another one ends the lockout.
    #expect(try device.ledger.removeUser(second, realClock: testTime))
    var visitor = TestVisitor()
    #expect(try visitor.use(issueSpare(device, seed: 6), at: device.connect()))
    #expect(try device.connect().round(prover, otp: sparePassword(0, of: visitor)).status == .lockedOut)
    // A code for one authenticator unlocks the user.
    #expect(try visitor.use(device.ledger.issueUnlocking(second), for: .unlock, at: device.connect()))
    #expect(try device.ledger.users().map(\.record.failureCount) == [0, 0])
    #expect(try device.connect().round(prover, otp: password(0)).status == .accepted)
  }

  @Test func `the owner's lock covers all authenticators, and withdraws the codes for them`() throws {
    let (device, spare) = try deviceWithSpare()
    let waiting = try issueSpare(device, seed: 7)
    try device.ledger.lockUser(second, until: testTime + 100, realClock: testTime)
    #expect(try device.ledger.users().map(\.record.lockedUntil) == [testTime + 100, testTime + 100])
    #expect(try device.ledger.openCodes().isEmpty)
    var visitor = TestVisitor()
    #expect(try !visitor.use(waiting, at: device.connect()))
    let prover = try device.prover()
    #expect(try device.connect().round(prover, otp: sparePassword(0, of: spare)).status == .lockedOut)
    #expect(try device.connect().round(prover, otp: password(0)).status == .lockedOut)
  }

  @Test func `there are at most two spares, only of a user who exists, and none of a spare`() throws {
    let (device, _) = try deviceWithSpare()
    var visitor = TestVisitor()
    #expect(try visitor.use(issueSpare(device, seed: 8), at: device.connect()))
    #expect(try device.ledger.users().map { "\($0.name)" } == ["ann", "ann#2", "ann#3"])
    #expect(throws: LedgerFault.tooManyAuthenticators) { _ = try device.ledger.nextSpare(of: ann) }
    #expect(throws: LedgerFault.unknownUser) { _ = try device.ledger.nextSpare(of: second) }
    #expect(throws: LedgerFault.unknownUser) { _ = try device.ledger.nextSpare(of: bob) }
    #expect(throws: LedgerFault.unknownUser) { _ = try issueSpare(device, of: bob, named: "bob#2") }
    for name in ["ann#4", "bob#2", "bob", "ann#2x"] {
      #expect(throws: LedgerFault.badUserName) { _ = try issueSpare(device, named: BoundedText(name)) }
    }
    #expect(throws: LedgerFault.badUserName) { try device.add("eve#2") }
    #expect(throws: LedgerFault.badUserName) { _ = try device.ledger.issue("eve#2") }
    let long = try #require(BoundedText<32>(String(repeating: "x", count: 31)))
    try device.add(long)
    #expect(throws: LedgerFault.badUserName) { _ = try device.ledger.nextSpare(of: long) }
  }

  @Test func `a removed user takes the spares along, and their codes are worthless`() throws {
    let (device, spare) = try deviceWithSpare()
    let waiting = try issueSpare(device, seed: 9)
    #expect(try device.ledger.removeUser(ann, realClock: testTime))
    #expect(try device.ledger.users().isEmpty && device.ledger.openCodes().isEmpty)
    #expect(try device.lastEvents(2) == [.userRemoved(second), .userRemoved(ann)])
    var visitor = TestVisitor()
    #expect(try !visitor.use(waiting, at: device.connect()))
    #expect(try device.connect().round(device.prover(), otp: sparePassword(0, of: spare)).status != .accepted)
    // A new user of the same name begins without them, also if the removal left a row behind.
    try device.add()
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      _ = try tables.insertUser("cat#2", now: testTime, terms: ActivationTerms(main: "cat"))
    }
    #expect(try device.ledger.users().map(\.name) == [ann])
  }

  @Test func `replacing a user forgets the spares, and renewing an authenticator keeps the others`() throws {
    let (device, spare) = try deviceWithSpare()
    let prover = try device.prover { $0.user = "ann" }
    for _ in 0..<5 { _ = try device.connect().round(prover, otp: wrong) }
    var random = TestRandom(state: 11)
    var visitor = TestVisitor()
    let renewal = try device.ledger.issueRenewal(of: ann, realClock: testTime, random: &random).text
    #expect(try device.ledger.openCodes().map(\.terms.renews) == [true])
    #expect(try visitor.use(renewal, at: device.connect()))
    #expect(try device.connect().round(prover, otp: sparePassword(0, of: spare)).status == .accepted)
    #expect(try device.connect().round(prover, otp: password(0)).status == .otpRejected)
    let renewed = try password(0, secret: try #require(visitor.secrets[.otp]))
    #expect(try device.connect().round(prover, otp: renewed).status == .accepted)
    // A spare is renewed in the same way, which ends the user's lockout.
    for _ in 0..<5 { _ = try device.connect().round(prover, otp: wrong) }
    #expect(
      try visitor.use(
        device.ledger.issueRenewal(of: second, realClock: testTime, random: &random).text, at: device.connect()))
    #expect(try device.ledger.users().map(\.record.failureCount) == [0, 0])
    #expect(try device.connect().round(prover, otp: sparePassword(0, of: visitor)).status == .accepted)
    // The owner replaces the user as a whole.
    #expect(try visitor.use(device.ledger.issue(replaces: true, seed: 12), at: device.connect()))
    #expect(try device.ledger.users().map(\.name) == [ann])
  }

  @Test func `a code that renews makes nobody a user who was removed meanwhile`() throws {
    let (device, _) = try deviceWithSpare()
    var random = TestRandom(state: 13)
    let renewal = try device.ledger.issueRenewal(of: ann, realClock: testTime, random: &random).text
    try device.ledger.write { (tables, _) throws(DatabaseError) in _ = try tables.deleteAuthenticator(ann) }
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      try tables.insertCode(
        .activation, key: .bytes([UInt8](repeating: 1, count: 32)), ann, expires: testTime + 100,
        methods: ByPurpose(otp: hotpMethod), terms: ActivationTerms(renews: true))
    }
    var visitor = TestVisitor()
    #expect(try !visitor.use(renewal, at: device.connect()))
    let found = try device.ledger.read { (tables) throws(DatabaseError) in try tables.code(at: 0)?.id }
    let secrets = UserSecrets(otp: Secret<32>(), seal: Secret<32>(), host: Secret<32>())
    let name = try device.ledger.activate(try #require(found), secrets, realClock: testTime) {
      $0.activatedUser(realClock: testTime)
    }
    #expect(name == nil)
    #expect(throws: LedgerFault.unknownUser) {
      _ = try device.ledger.issueRenewal(of: bob, realClock: testTime, random: &random)
    }
  }

  @Test func `a user of an earlier version whose name looks like a spare's is a user like any other`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      let (id, secret) = (try tables.insertUser("ann#2", now: testTime), usersSecret)
      try tables.insertAccount(.otp, hotpMethod, nextPosition: 0, secret: secret.span, of: id)
    }
    let anns = try device.prover { $0.user = "ann" }
    #expect(try device.connect().round(anns, otp: password(0, user: second)).status == .commandRefused)
    for _ in 0..<5 { _ = try device.connect().round(device.prover(), otp: wrong) }
    #expect(try device.ledger.users().map(\.record.failureCount) == [0, 5])
    #expect(try device.ledger.nextSpare(of: ann) == "ann#3")
    // It may be renewed, although no new user may have that name.
    var random = TestRandom(state: 14)
    _ = try device.ledger.issueActivation(
      of: second, ByPurpose(otp: hotpMethod), replaces: true, terms: ActivationTerms(renews: true), realClock: testTime,
      random: &random)
    #expect(throws: LedgerFault.badUserName) { _ = try device.ledger.issue("ann#2", replaces: true) }
    #expect(try device.ledger.removeUser(ann, realClock: testTime))
    #expect(try device.ledger.users().map(\.name) == [second])
  }
}

/// The protection that the owner demands with an activation code.
@Suite struct DemandTests {
  private let demand = ProtectionDemand(pinLength: 6, needsKey: true)

  private func issue(_ device: TestDevice, _ demand: ProtectionDemand?, seed: UInt64 = 1) throws -> String {
    var random = TestRandom(state: seed)
    return try device.ledger.issueActivation(
      of: ann, ByPurpose(otp: hotpMethod), replaces: true, terms: ActivationTerms(demand: demand), realClock: testTime,
      random: &random
    ).text
  }

  @Test func `a demand comes with the grant, and stays with the user`() throws {
    let device = try TestDevice()
    let text = try issue(device, demand)
    #expect(try device.ledger.openCodes().map(\.terms.demand) == [demand])
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: device.connect()) && visitor.demand == demand)
    #expect(try device.ledger.users().map(\.demand) == [demand])
    var random = TestRandom(state: 4)
    let renewal = try device.ledger.issueRenewal(of: ann, realClock: testTime, random: &random).text
    #expect(try visitor.use(renewal, at: device.connect()) && visitor.demand == demand)
    #expect(try visitor.use(issue(device, nil, seed: 6), at: device.connect()) && visitor.demand == nil)
    #expect(try device.ledger.users().map(\.demand) == [nil])
  }

  @Test func `a demand that the owner changes between grant and confirmation ends the activation`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    var visitor = TestVisitor()
    var messageCount = 0
    let isActivated = try visitor.use(
      issue(device, nil), for: .activation, challenge: connection.challenge()
    ) { message in
      messageCount += 1
      if messageCount == 2 { _ = try issue(device, demand, seed: 2) }
      return connection.respond(message)
    }
    #expect(!isActivated && messageCount == 2 && visitor.status == .otpRejected)
    #expect(try device.ledger.users().isEmpty)
  }

  @Test func `a board keeps neither demands nor spares`() throws {
    let test = try TestImage()
    try test.image.add(ann, otp: hotpMethod, seal: nil)
    var random = TestRandom(state: 4)
    for terms in [ActivationTerms(demand: demand), ActivationTerms(main: ann)] {
      #expect(throws: LedgerFault.notOnBoards) {
        _ = try test.image.issueActivation(
          of: "ann#2", ByPurpose(otp: hotpMethod), replaces: false, terms: terms, realClock: testTime, random: &random)
      }
    }
  }
}
