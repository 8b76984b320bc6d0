import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// The owner's changes of users, and the ledger's records of them.
@Suite struct LedgerUsersTests {
  @Test func `every field of a user comes back as it was written, also to the next process`() throws {
    let device = try TestDevice()
    try device.add(otp: totpMethod, seal: counterSealMethod)
    var written = try #require(try device.record())
    #expect(written.lastAccepted == testTime && written.failureCount == 0 && written.clockOffsetSeconds == 0)
    (written.failureCount, written.lockedUntil) = (maximumInteger, maximumInteger - 1)
    written.failedFactors = [.otp, .seal]
    (written.clockOffsetSeconds, written.lastAccepted) = (-4001, testTime + 7)
    written.accounts[.otp]?.nextPosition = maximumInteger
    written.accounts[.otp]?.resynchronisingPosition = 12
    written.accounts[.seal]?.nextPosition = 3
    written.challenge = IssuedChallenge(bytes: TypedBytes(filledWith: 0xc4), expires: testTime + 300)
    let record = written
    try device.ledger.write { (tables, _) throws(DatabaseError) in try tables.save(record) }
    #expect(try device.record() == record)
    try device.reopenLedger()
    #expect(try device.record() == record)
    #expect(try device.ledger.users() == [LedgerUser(name: ann, record: record)])
    (written.challenge, written.clockOffsetSeconds) = (nil, 0)
    written.accounts[.otp]?.resynchronisingPosition = nil
    let cleared = written
    try device.ledger.write { (tables, _) throws(DatabaseError) in try tables.save(cleared) }
    #expect(try device.record() == cleared)
  }

  @Test func `the secret of each account is kept, and another has none`() throws {
    let device = try TestDevice()
    try device.add(seal: nil, nextPosition: 41)
    let id = try #require(try device.record()).id
    let kept = try device.ledger.read { (tables) throws(DatabaseError) -> [Bool] in
      var isOTP = false
      if let otp = try tables.secret(.otp, of: id) { isOTP = Array(otp.bytes) == usersSecret }
      let seal = try tables.secret(.seal, of: id)
      let other = try tables.secret(.otp, of: id + 1)
      let (hasSeal, hasOther) = (seal != nil, other != nil)
      return [isOTP, !hasSeal, !hasOther]
    }
    #expect(kept == [true, true, true])
    #expect(try device.record()?.accounts[.otp] == CodeAccount(method: hotpMethod, nextPosition: 41))
  }

  @Test func `an id is never given again, not to a user of the same name neither`() throws {
    let device = try TestDevice()
    var ids: [UInt64] = []
    for _ in 0..<3 {
      try device.add()
      ids.append(try #require(try device.record()).id)
      #expect(try device.ledger.removeUser(ann, realClock: testTime))
    }
    try device.reopenLedger()
    for replaces in [false, true, true] {
      try device.add(replaces: replaces)
      ids.append(try #require(try device.record()).id)
    }
    #expect(ids == [1, 2, 3, 4, 5, 6])
  }

  @Test func `a user who is there is replaced only if the owner says so, and begins anew`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    let connection = try device.connect()
    let prover = try device.prover()
    for _ in 0..<5 { _ = try connection.round(prover, otp: UserCode(user: ann, code: BoundedText("000000"))) }
    let before = try device.record()
    #expect(before?.failureCount == 5)
    #expect(throws: LedgerFault.userExists) { try device.add(secret: [1, 2, 3]) }
    #expect(throws: LedgerFault.userExists) { _ = try device.ledger.issue() }
    #expect(try device.record() == before)
    try device.add(secret: [1, 2, 3], replaces: true)
    #expect(try device.record()?.failureCount == 0)
    #expect(try connection.round(prover, otp: try password(0)).status == .otpRejected)
    #expect(try connection.round(prover, otp: try password(0, secret: [1, 2, 3])).status == .accepted)
  }

  @Test func `what the owner does is audited, and the chain still verifies`() throws {
    let device = try TestDevice()
    let text = try device.ledger.issue()
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: device.connect()))
    let unlocking = try device.ledger.issueUnlocking()
    #expect(try visitor.use(unlocking, for: .unlock, at: device.connect()))
    try device.add(bob)
    try device.ledger.removeUser(ann, realClock: testTime)
    #expect(
      try device.lastEvents(6) == [
        .codeIssued(.activation, ann), .userActivated(ann), .codeIssued(.unlock, ann), .userUnlocked(ann),
        .userAdded(bob),
        .userRemoved(ann),
      ])
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
    #expect(try device.ledger.removeUser(ann, realClock: testTime) == false)
    #expect(try device.lastEvents(1) == [.userRemoved(ann)])
  }

  @Test func `a round with codes has one audit entry, which names the user`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    let prover = try device.prover()
    let before = try device.ledger.summary().audit.count
    #expect(try device.connect().round(prover, otp: try password(0)).status == .accepted)
    #expect(try device.connect().round(prover, otp: try password(0)).status == .otpRejected)
    #expect(try device.ledger.summary().audit.count == before + 2)
    let rounds = try device.lastEvents(2).map { event -> (Status, BoundedText<32>?)? in
      if case .round(let round) = event { return (round.status, round.user) }
      return nil
    }
    #expect(rounds[0]! == (.accepted, ann) && rounds[1]! == (.otpRejected, ann))
  }

  @Test func `there are as many users as there may be, and one may still be replaced`() throws {
    let device = try TestDevice(limits: LedgerLimits(userCount: 2))
    try device.add(ann)
    let waiting = try device.ledger.issue(BoundedText("eve"))
    try device.add(bob)
    #expect(throws: LedgerFault.tooManyUsers) { try device.add(BoundedText("kim")) }
    #expect(throws: LedgerFault.tooManyUsers) { _ = try device.ledger.issue(BoundedText("kim")) }
    try device.add(bob, replaces: true)
    var eve = TestVisitor()
    #expect(try eve.use(waiting, at: device.connect()) == false && eve.status == .otpRejected)
    let text = try device.ledger.issue(ann, replaces: true, seed: 9)
    var visitor = TestVisitor()
    #expect(try visitor.use(text, at: device.connect()))
    #expect(try device.ledger.users().map(\.name) == [ann, bob])
    // Once there is room, the code that waited is still good.
    try device.ledger.removeUser(bob, realClock: testTime)
    #expect(try eve.use(waiting, at: device.connect()))
  }

  @Test func `accounts that a device could not verify, or would verify for nothing, are refused`() throws {
    let device = try TestDevice()
    for (otp, seal) in [
      (nil, nil), (CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QN07")!), nil), (nil, hotpMethod),
      (hotpMethod, totpMethod),
      (nil, CodeMethod.ocra(OCRASuite("OCRA-1:HOTP-SHA256-8:QN08")!)),
    ] as [(CodeMethod?, CodeMethod?)] {
      #expect(throws: LedgerFault.unsupportedMethod) { try device.add(otp: otp, seal: seal) }
      #expect(throws: LedgerFault.unsupportedMethod) { _ = try device.ledger.issue(otp: otp, seal: seal) }
    }
    #expect(try device.ledger.users().isEmpty)
  }

  @Test func `a secret has 1 to 64 bytes, and a counter ends where integers do`() {
    for (count, position, isRight) in [
      (0, UInt64(0), false), (1, 0, true), (64, 0, true), (65, 0, false), (20, maximumInteger, true),
      (20, maximumInteger + 1, false),
    ] {
      let secret = SecretBytes(copying: [UInt8](repeating: 1, count: count).span)
      let account = NewAccount(purpose: .otp, method: hotpMethod, nextPosition: position, secret: secret)
      #expect((account != nil) == isRight)
    }
  }

  @Test func `a device that was reset knows no users`() throws {
    let device = try TestDevice()
    try device.add()
    _ = try device.ledger.issue(bob)
    try device.ledger.write { (tables, _) throws(DatabaseError) in try tables.forgetAll() }
    let counts = try device.ledger.read { (tables) throws(DatabaseError) in
      [
        try tables.userCount(), try tables.codeCount(),
        try tables.database.oneUnsigned("SELECT count(*) FROM accounts") ?? 9,
      ]
    }
    #expect(counts == [0, 0, 0])
  }

  @Test func `a ledger of the version before is migrated, and keeps what it had`() throws {
    let place = try TemporaryFolder()
    let path = place.file("ledger.sqlite")
    let old = try Database(
      path: path, applicationID: LedgerTables.applicationID, schema: Array(LedgerTables.schema.prefix(2)))
    try old.run(
      """
      INSERT INTO state (id, device_id, clock_floor, forgotten_through, boot_count, kept_count, audit_count, audit_head)
      VALUES (1, x'000102030405060708090a0b0c0d0e0f', 1700000000, 5, 6, 1, 0, zeroblob(32))
      """)
    try old.run("INSERT INTO uses VALUES (x'0011223344556677', zeroblob(16), 1800000000, 3)")
    try old.close()
    let ledger = try Ledger(path: path, limits: LedgerLimits())
    #expect(try ledger.users().isEmpty)
    try ledger.add(ann, otp: hotpMethod, seal: nil)
    #expect(try ledger.users().map(\.name) == [ann])
    let summary = try ledger.summary()
    #expect(summary.clockFloor == 1_700_000_000 && summary.bootCount == 6 && summary.keptCount == 1)
    let uses = try ledger.read { (tables) throws(DatabaseError) in
      try tables.database.oneUnsigned("SELECT count FROM uses")
    }
    #expect(uses == 3)
    // The version before does not open what is newer than it.
    #expect(throws: DatabaseError.self) {
      _ = try Database(
        path: path, applicationID: LedgerTables.applicationID, schema: Array(LedgerTables.schema.prefix(2)))
    }
  }

  @Test func `adding, locking and removing a user looks at few more pages if there are twenty thousand`() throws {
    let device = try TestDevice()
    func pageLookCount() throws -> Int {
      try device.ledger.read { (tables) throws(DatabaseError) in tables.database.pageLookCount }
    }
    func lookCount(_ user: BoundedText<32>) throws -> Int {
      let before = try pageLookCount()
      try device.add(user)
      try device.ledger.lockUser(user, until: testTime, realClock: testTime)
      try device.ledger.removeUser(user, realClock: testTime)
      return try pageLookCount() - before
    }
    let amongNone = try lookCount(ann)
    try device.ledger.write { (tables, _) throws(DatabaseError) in
      for number in 0..<20_000 { _ = try tables.insertUser(BoundedText("user-\(number)")!, now: testTime) }
    }
    let amongMany = try lookCount(bob)
    #expect(amongMany < amongNone * 2)
  }

  @Test func `a user whose row cannot be read is nobody, and nothing is accepted`() throws {
    for sql: StaticString in [
      "UPDATE accounts SET method = x'80'", "UPDATE users SET failures = -1", "UPDATE accounts SET next_position = -1",
      "UPDATE users SET challenge = x'00'",
    ] {
      let device = try TestDevice()
      device.requireCodes()
      try device.add()
      try device.tamper(sql)
      #expect(try device.connect().round(try device.prover(), otp: try password(0)).status == .internal)
      #expect(throws: LedgerFault.damaged) { _ = try device.ledger.users() }
    }
  }
}
