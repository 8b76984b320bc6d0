import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastFirmware

/// A small device takes bulletins, and forgets nothing of them.
@Suite struct FlashStoreBulletinsTests {
  let firmware: TestFirmware
  let machine: TestMachine<TestStore>
  let courier: TestProver

  init() throws {
    firmware = try TestFirmware(issuerCount: 2, groups: [BoundedText("north"), BoundedText("doors")])
    firmware.clock.seconds = nil
    machine = try TestMachine(firmware.open(), of: firmware)
    courier = try firmware.prover()
  }

  private func signed(
    _ number: UInt64, after predecessor: UInt64 = 0, by issuer: Int = 0,
    _ change: (inout TestBulletin) -> Void = { _ in }
  ) throws -> [UInt8] {
    var bulletin = TestBulletin(for: firmware.deviceID)
    bulletin.number = 1000 * testTime + number
    bulletin.predecessor = predecessor == 0 ? 0 : 1000 * testTime + predecessor
    change(&bulletin)
    return try firmware.issuers[issuer].bulletin(bulletin)
  }

  private func tokens(_ ids: ClosedRange<UInt8>, until: UInt64 = testTime + 1000) -> [(TokenID, until: UInt64)] {
    ids.map { (TokenID(filledWith: $0), until: until) }
  }

  private func status(
    ofToken id: UInt8, from issuer: Int = 0, on other: TestMachine<TestStore>? = nil,
    _ change: (inout TestClaims) -> Void = { _ in }
  ) throws -> Status {
    let prover = try firmware.prover(from: issuer) {
      $0.tokenID = TokenID(filledWith: id)
      change(&$0)
    }
    return try (other ?? machine).status(prover, "status")
  }

  /// Lets the store take a bulletin of the first issuer, without a session.
  private func take(
    _ bytes: [UInt8], latestIssue: UInt64 = testTime, realClock: UInt64? = nil, on other: TestMachine<TestStore>? = nil
  ) throws -> BulletinResult {
    let point = firmware.issuers[0].point
    return try (other ?? machine).withStore { (store: inout TestStore) throws in
      var cryptography = OpenSSLCryptography()
      let bulletin = try Bulletin(bytes.span)
      let verified = try bulletin.verified(by: point, using: &cryptography)
      return try store.take(
        verified, on: BulletinTerms(latestIssue: latestIssue, mayIntroduce: false, realClock: realClock))
    }
  }

  private func contents() throws -> StoreContents { try machine.withStore { try $0.contents() } }

  @Test func `a revoked token is refused from then on, also one that is remembered, and only under the bulletin's key`()
    throws
  {
    let thief = try firmware.prover { $0.tokenID = TokenID(filledWith: 0x66) }
    #expect(try machine.status(thief) == .accepted)
    let whole = thief.token
    var cryptography = OpenSSLCryptography()
    let reference = try tokenReference(whole.span, using: &cryptography)
    let isRemembered = machine.withStore { (store: inout TestStore) in
      var known = AuthenticatedToken()
      return store.recall(reference, into: &known)
    }
    #expect(isRemembered)
    #expect(try machine.deliver(signed(1) { $0.revoked = tokens(0x66...0x66) }, by: courier) == .taken)
    #expect(try machine.status(thief) == .tokenRevoked)
    #expect(try machine.compatibility(thief, nonce: 1) == .tokenRevoked)
    #expect(try status(ofToken: 0x66, from: 1) == .accepted)
    #expect(try machine.status(courier) == .accepted)
    let other = try TestMachine(firmware.open(), of: firmware)
    #expect(try other.status(thief) == .tokenRevoked)
    #expect(firmware.contents() == (try contents()))
    let (entries, isWhole) = try machine.withStore { try $0.auditEntries() }
    #expect(isWhole)
    let keyID = try firmware.issuers[0].keyID()
    #expect(
      entries.map(\.event).contains(
        .bulletinTaken(keyID, AudienceID(firmware.deviceID.bytes)!, number: 1000 * testTime + 1)))
  }

  @Test func `64 tokens are revoked, the 65th is full and changes nothing, and the generation is taken`() throws {
    #expect(try machine.deliver(signed(1) { $0.revoked = tokens(0x80...0xa0) }, by: courier) == .taken)
    #expect(try machine.deliver(signed(2, after: 1) { $0.revoked = tokens(0xa0...0xbf) }, by: courier) == .taken)
    let before = try contents()
    #expect(try machine.deliver(signed(3, after: 2) { $0.revoked = tokens(0xbf...0xc0) }, by: courier) == .full)
    #expect(try contents().items == before.items)
    #expect(try status(ofToken: 0xc0) == .accepted)
    // One that is known needs no room.
    #expect(try machine.deliver(signed(3, after: 2) { $0.revoked = tokens(0xbf...0xbf) }, by: courier) == .taken)
    let newer = try firmware.prover { ($0.tokenID, $0.generation) = (TokenID(filledWith: 1), 9) }
    #expect(try machine.deliver(signed(4, after: 3) { $0.generation = 9 }, by: courier) == .taken)
    for _ in 0..<2 {
      #expect(try machine.status(newer) == .accepted)
      for id: UInt8 in [0x80, 0xa0, 0xbf, 0xc0] { #expect(try status(ofToken: id) == .tokenRevoked, "\(id)") }
      // The list still holds 64, whatever the generation says.
      #expect(try status(ofToken: 0x80) { $0.generation = 9 } == .tokenRevoked)
      #expect(try status(ofToken: 0xc0) { $0.generation = 9 } == .accepted)
      try machine.withStore { (store: inout TestStore) throws in try store.compact() }
      #expect(firmware.contents() == (try contents()))
    }
  }

  @Test func `a full bulletin of 64 tokens fits into the journal at any fill, and after it has moved`() throws {
    var number: UInt64 = 0
    var moves = 0
    var slot = machine.withStore { $0.journal.slot }
    while moves < 2 {
      number += 1
      #expect(
        try machine.deliver(signed(number, after: number - 1) { $0.revoked = tokens(0x80...0xbf) }, by: courier)
          == .taken)
      let now = machine.withStore { $0.journal.slot }
      if now != slot { (slot, moves) = (now, moves + 1) }
      guard number < 200 else {
        Issue.record("the journal has not moved")
        return
      }
    }
    #expect(try status(ofToken: 0xbf) == .tokenRevoked)
    #expect(firmware.contents() == (try contents()))
  }

  @Test func `a revoked token is dropped with the next bulletin once the clock floor has reached its time`() throws {
    #expect(
      try machine.deliver(signed(1) { $0.revoked = tokens(0x80...0xbf, until: testTime + 100) }, by: courier) == .taken)
    func next(_ number: UInt64, at time: UInt64, _ id: UInt8) throws -> BulletinResult? {
      let bulletin = try signed(1000 * 100 + number, after: 0) {
        ($0.issuedAt, $0.revoked) = (time, tokens(id...id))
      }
      return try machine.deliver(bulletin, by: courier)
    }
    #expect(try next(1, at: testTime + 99, 1) == .full)
    #expect(try next(1, at: testTime + 100, 1) == .taken)
    #expect(try contents().clockFloor == testTime + 100)
    #expect(try status(ofToken: 1) == .tokenRevoked)
    // The first 64 have expired, and there is room for 63 more.
    let more = try signed(200_000, after: 0) { ($0.issuedAt, $0.revoked) = (testTime + 100, tokens(2...0x40)) }
    #expect(try machine.deliver(more, by: courier) == .taken)
    #expect(try next(200_001, at: testTime + 100, 0x41) == .full)
  }

  @Test func `floors only rise, and a round that raises one keeps the numbers of bulletins`() throws {
    #expect(try machine.deliver(signed(1) { $0.generation = 5 }, by: courier) == .taken)
    #expect(try machine.status(courier) == .tokenRevoked)
    let fifth = try firmware.prover { $0.generation = 5 }
    #expect(try machine.deliver(signed(2, after: 1) { $0.generation = 3 }, by: fifth) == .taken)
    #expect(try machine.status(courier) == .tokenRevoked)
    let sixth = try firmware.prover { ($0.generation, $0.tokenID) = (6, TokenID(filledWith: 6)) }
    #expect(try machine.status(sixth) == .accepted)
    #expect(try machine.status(fifth) == .tokenRevoked)
    #expect(try machine.deliver(signed(2, after: 1), by: sixth) == .known)
    #expect(try machine.deliver(signed(3, after: 2), by: sixth) == .taken)
    #expect(try machine.status(fifth) == .tokenRevoked)
    #expect(try status(ofToken: 9, from: 1) == .accepted)
    #expect(firmware.contents() == (try contents()))
  }

  @Test func `each of the other results changes nothing`() throws {
    #expect(try machine.deliver(signed(5), by: courier) == .taken)
    let before = try contents()
    let good = try signed(6, after: 5) { $0.generation = 7 }
    var forged = good
    forged[forged.count - 1] ^= 1
    let stranger = try TestIssuer()
    let cases: [(BulletinResult, [UInt8])] = [
      (.known, try signed(5)), (.known, try signed(4)), (.missed, try signed(8, after: 6)),
      (.notAddressed, try signed(6) { $0.audience = AudienceID(filledWith: 1) }),
      (.refused, try stranger.bulletin(TestBulletin(for: firmware.deviceID))), (.refused, forged),
      (.refused, Array(good.dropLast())), (.refused, good + [0]),
      (.refused, try signed(1000 * 401 * 86_400, after: 0) { $0.issuedAt = testTime + 400 * 86_400 + 1 }),
      (.full, try signed(6, after: 5) { $0.versions = [("app", 1, 0, 0)] }),
      (.full, try signed(6, after: 5) { $0.ended = [KeyID(filledWith: 1)] }),
      (.full, try signed(6, after: 5) { $0.revoked = tokens(1...100) }),
    ]
    for (index, (result, bulletin)) in cases.enumerated() {
      #expect(try machine.deliver(bulletin, by: courier) == result, "case \(index)")
      #expect(try contents().items == before.items, "case \(index)")
    }
    #expect(try machine.deliver(good, by: courier) == .taken)
  }

  /// A session looks at the list before it checks a signature. The store decides by the list that it has then.
  @Test func `the store itself takes no bulletin twice, out of order, from the future or for others`() throws {
    #expect(try take(signed(5)) == .taken)
    let before = try contents()
    #expect(try take(signed(5)) == .known)
    #expect(try take(signed(4)) == .known)
    #expect(try take(signed(7, after: 6)) == .missed)
    #expect(try take(signed(7, after: 5), latestIssue: testTime - 1) == .refused)
    #expect(try take(signed(7, after: 5) { $0.audience = AudienceID(filledWith: 1) }) == .notAddressed)
    #expect(try contents() == before)
    #expect(try take(signed(7, after: 5)) == .taken)
  }

  @Test func `a bulletin of a seventeenth verifying key is not taken, and costs nobody else anything`() throws {
    try machine.withStore { (store: inout TestStore) throws in
      for id in 1...16 as ClosedRange<UInt8> {
        try store.record { (store: inout TestStore) throws(EncodingFault) in
          try store.draftGeneration(3, of: KeyID(filledWith: id))
        }
      }
    }
    let before = try contents()
    #expect(throws: DeviceFault.store) { try take(signed(1)) }
    #expect(machine.withStore { !$0.isFailed })
    #expect(try contents() == before)
    #expect(firmware.contents() == before)
  }

  @Test func `a store that could not write a bulletin answers nothing any more, until the device starts again`() throws
  {
    let before = try contents()
    let failing = try TestMachine(firmware.open(wordCount: 3), of: firmware)
    #expect(throws: DeviceFault.store) { try take(signed(1), on: failing) }
    #expect(throws: DeviceFault.store) { try failing.challenge() }
    #expect(firmware.contents() == before)
    #expect(try take(signed(1), on: TestMachine(firmware.open(), of: firmware)) == .taken)
  }

  @Test func `the entry about a bulletin has the later one of the floor and the clock`() throws {
    let cases: [(issue: UInt64, clock: UInt64?, time: UInt64)] = [
      (10, nil, 10), (20, 15, 20), (20, 25, 25), (15, 5, 20),
    ]
    for (index, (issue, clock, time)) in cases.enumerated() {
      let bulletin = try signed(1000 * 100 + UInt64(index)) { $0.issuedAt = testTime + issue }
      #expect(try take(bulletin, latestIssue: testTime + issue, realClock: clock.map { testTime + $0 }) == .taken)
      let entry = try machine.withStore { try $0.auditEntries().entries.last }
      #expect(entry?.time == testTime + time, "case \(index)")
    }
  }

  @Test func `one signature is checked after an accepted round, and a wrong one ends the permission`() throws {
    _ = try machine.challenge()
    #expect(try machine.deliverAgain(signed(1)) == nil)
    #expect(try machine.deliver(signed(1), by: courier) == .taken)
    #expect(try machine.deliverAgain(signed(2, after: 1)) == .busy)
    #expect(try machine.deliverAgain(signed(1)) == .known)
    #expect(machine.bulletinList() != nil)
    var forged = try signed(2, after: 1)
    forged[forged.count - 1] ^= 1
    #expect(try machine.deliver(forged, by: courier) == .refused)
    #expect(try machine.deliverAgain(signed(2, after: 1)) == nil)
    _ = try machine.challenge()
    #expect(try machine.deliverAgain(signed(2, after: 1)) == nil)
    #expect(try machine.deliver(signed(2, after: 1), by: courier) == .taken)
    for _ in 0..<7 { #expect(machine.bulletinList() != nil) }
    #expect(machine.bulletinList() == nil)
  }

  @Test func `a numbered round tells the state of the list, with the device and its groups`() throws {
    var cryptography = OpenSSLCryptography()
    let groups = try firmware.groups.map { try audience(ofGroup: $0, using: &cryptography) }
    let audiences = [AudienceID(firmware.deviceID.bytes)!] + groups
    var numbers: [AudienceID: UInt64] = [:]
    var request: UInt64 = 0
    func told(_ issuer: Int = 0) throws -> BulletinState? {
      request += 1
      let prover = try firmware.prover(from: issuer) { $0.tokenID = TokenID(filledWith: 0x50 + UInt8(issuer)) }
      return try machine.round(prover, "status", number: request).notice?.bulletinState
    }
    func expected(_ numbers: [AudienceID: UInt64]) throws -> BulletinState {
      try BulletinList(audiences.map { BulletinList.Row(audience: $0, number: numbers[$0] ?? 0) })
        .state(using: &cryptography)
    }
    #expect(try told() == expected([:]))
    for (index, audience) in audiences.enumerated() {
      let number = UInt64(index) + 1
      #expect(try machine.deliver(signed(number) { $0.audience = audience }, by: courier) == .taken)
      numbers[audience] = 1000 * testTime + number
      let list = machine.bulletinList()
      #expect(list?.rows.filter { $0.number > 0 }.count == index + 1)
      #expect(try told() == expected(numbers))
      #expect(try told(1) == expected([:]))
      #expect(try told() == expected(numbers))
    }
    #expect(try machine.round(courier, "status").notice?.bulletinState == nil)
    let other = try TestMachine(firmware.open(), of: firmware)
    let prover = try firmware.prover { $0.tokenID = TokenID(filledWith: 0x51) }
    #expect(try other.round(prover, "status", number: 9).notice?.bulletinState == expected(numbers))
  }

  @Test(arguments: [nil, true, false] as [Bool?])
  func `a device without groups has a list of only itself, whether or not its log has a home`(homeRefuses: Bool?) throws
  {
    let firmware = try TestFirmware(homeRefuses: homeRefuses)
    let machine = try TestMachine(firmware.open(), of: firmware)
    #expect(try machine.status(firmware.prover(), "status") == .accepted)
    _ = try machine.challenge()
    let row = BulletinList.Row(audience: AudienceID(firmware.deviceID.bytes)!, number: 0)
    #expect(machine.bulletinList() == BulletinList([row]))
  }

  @Test func `only an accepted round tells the state of the list, and a key that is not trusted has none`() throws {
    try machine.withStore { (store: inout TestStore) throws in
      try store.add(ann, otp: hotpMethod, seal: nil, secret: usersSecret)
      var list = EncodedBulletinList()
      let isGiven = try store.writeBulletins(of: KeyID(filledWith: 9), into: &list)
      #expect(!isGiven)
    }
    let wrong = UserCode(user: ann, code: BoundedText("000000"))
    let rejected = try machine.round(courier, "configure", otp: wrong, number: 1)
    #expect(rejected.status == .otpRejected && rejected.notice?.bulletinState == nil)
    let accepted = try machine.round(courier, "configure", otp: password(0), number: 2)
    #expect(accepted.status == .accepted && accepted.notice?.bulletinState != nil)
  }

  @Test func `at the line, mail comes between rounds, and another peer may send none`() throws {
    let line = TestLine(clock: firmware.clock)
    let bulletin = try signed(1) { $0.revoked = tokens(0x33...0x33) }
    func message(_ bulletin: [UInt8]) -> [UInt8] {
      var message: [UInt8] = []
      MailMessage.encode(.bulletin, bulletin.span, into: &message)
      return message
    }
    func m2(_ line: TestLine) throws -> [UInt8] {
      let challenge = try #require(line.messages.last { (try? Challenge($0.bytes.span)) != nil })
      return try courier.answer(challenge.bytes, command: "status").message
    }
    line.then { $0.message(try m2($0)) }
    line.then { $0.message(message(bulletin)) }
    // The challenge from before is still open.
    line.then { $0.message(try m2($0)) }
    line.then { $0.bytes([0, 0]) }
    line.then { $0.message(message(bulletin)) }
    try firmware.serve(line)
    let answers = line.messages.compactMap { try? BulletinAnswer($0.bytes.span).result }
    #expect(answers == [.taken])
    let statuses = line.messages.compactMap { try? VerdictMessage($0.bytes.span).status }
    #expect(statuses == [.accepted, .accepted, .malformed])
    // M1 comes at the start, after each M3 and after the empty frame, and not after mail.
    #expect(line.messages.filter { (try? Challenge($0.bytes.span)) != nil }.count == 5)
    let other = try TestMachine(firmware.open(), of: firmware)
    #expect(try status(ofToken: 0x33, on: other) == .tokenRevoked)
  }

  @Test(arguments: [31, 33, 65 * 32]) func `a list that no device writes is damage`(byteCount: Int) throws {
    var item: [UInt8] = []
    item.begin(.revoked)
    item.appendCBOR(bytes: [UInt8](repeating: 1, count: byteCount).span)
    #expect(throws: DeviceFault.store) {
      try machine.withStore { (store: inout TestStore) throws in try store.append(item.span) }
    }
    #expect(firmware.contents() == nil)
  }
}
