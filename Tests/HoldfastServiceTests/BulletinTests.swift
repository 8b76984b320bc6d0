import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastService
import TestSupport
import Testing

@Suite struct BulletinTests {
  @Test(arguments: TestedDatabase.installed)
  func `a bulletin says what changed since the one before, at most once a minute`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let tokens = try (1...3).map { salt in try test.issuedToken(TestApp(salt: salt)) }
    #expect(try test.bulletins().isEmpty)
    try test.revoke(tokens[0])
    let first = try #require(try test.bulletins().only)
    #expect(first.stamp.number == TestFleet.now * 1000 && first.stamp.predecessor == 0)
    // A prover knows when its token expires.
    let (expires, unit) = (TestFleet.now + 90 * 86_400, 1 << 19 as UInt64)
    #expect(try first.says().revoked == [tokens[0]: expires + unit - expires % unit])
    try test.revoke(tokens[1])
    test.wait(seconds: 59)
    #expect(try test.bulletins() == [first])
    try test.revoke(tokens[2])
    test.wait(seconds: 1)
    let second = try #require(try test.bulletins(above: first.stamp.number).only)
    #expect(second.stamp.number == (TestFleet.now + 60) * 1000 && second.stamp.predecessor == first.stamp.number)
    #expect(try Set(second.says().revoked.keys) == [tokens[1], tokens[2]])
    test.wait(seconds: 600)
    #expect(try test.bulletins() == [first, second])
    #expect(try test.bulletins(above: second.stamp.number).isEmpty)
  }

  @Test(arguments: [(1, 1), (15, 1), (16, 2), (127, 8), (128, 16)] as [(UInt64, UInt64)])
  func `an expiry is rounded up by less than an eighth of the lifetime`(seconds: UInt64, unit: UInt64) throws {
    var policy = ServicePolicy()
    policy.tokenSeconds = seconds
    let test = try TestFleet(.sqlite, policy: policy)
    for salt: UInt8 in 1...3 {
      let token = try test.issuedToken(TestApp(salt: salt, created: try #require(test.clock.seconds)))
      try test.revoke(token)
      let expires = try #require(test.clock.seconds) + seconds
      let last = try #require(try test.bulletins().last)
      #expect(try last.says().revoked[token] == (expires + unit - 1) / unit * unit)
      test.wait(seconds: 61)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a revoked prover is revoked by its tokens, and a token that has expired is not named`(
    database: TestedDatabase
  ) throws {
    var policy = ServicePolicy()
    policy.tokenSeconds = 1000
    let test = try TestFleet(database, policy: policy)
    let early = try test.issuedToken(TestApp(salt: 1))
    test.wait(seconds: 200)
    let others = try (2...3).map { salt in
      try test.issuedToken(TestApp(salt: salt, host: 2, created: TestFleet.now + 200))
    }
    try test.revoke(early)
    let prover = try #require(
      try test.list("listTokens").first { $0["id"]?.text == hexadecimal(others[0]) }?["prover"]?.text)
    _ = try test.perform("revokeProver", key: prover, body: .object([("reason", .string("stolen"))]))
    test.wait(seconds: 800)
    #expect(try Set(#require(try test.bulletins().only).says().revoked.keys) == Set(others))
  }

  @Test(arguments: TestedDatabase.installed)
  func `a device that is not registered has no bulletins, and a higher generation is in the device's own`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let other = try TestFleet.device(2)
    #expect(try test.bulletins(for: other).isEmpty)
    _ = try test.issuedToken(TestApp(salt: 1))
    // A revoked device has a higher generation, which excludes its tokens, so that none is listed.
    try test.fleet.revoke(device: test.device.deviceID, reason: "broken", by: test.owner)
    let change = try #require(try test.list("listChanges").first)
    #expect(change["action"]?.text == "device.revoke" && change["detail"]?.text == "broken")
    #expect(change["object"]?.text == hexadecimal(test.device.deviceID))
    let own = try #require(try test.bulletins().only)
    #expect(try own.says().generation == 2 && own.says().revoked.isEmpty)
    #expect(own.stamp.audience == AudienceID(test.device.deviceID.bytes))
    #expect(try test.bulletins(for: other).isEmpty)
  }

  @Test(arguments: TestedDatabase.installed)
  func `what is too long for one bulletin goes in parts, of which an answer has the oldest`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let tokens = try (0...249).map { salt in try test.issuedToken(TestApp(salt: salt)) }
    for token in tokens { try test.revoke(token) }
    let parts = try test.bulletins()
    #expect(try parts.map { try $0.says().revoked.count } == [120, 120, 10])
    #expect(parts.map(\.stamp.predecessor) == [0, parts[0].stamp.number, parts[1].stamp.number])
    #expect(try Set(parts.flatMap { try $0.says().revoked.keys }) == Set(tokens))
    #expect(try test.bulletins(above: parts[0].stamp.number) == Array(parts[1...]))
  }

  @Test func `an answer has at most 16 bulletins, and at most 16 KiB`() {
    func answer(_ byteCounts: [Int]) -> [UInt64] {
      let bulletins = byteCounts.enumerated().map { index, count in
        IssuedBulletin(
          BulletinStamp(number: UInt64(index), predecessor: 0, issuedAt: 0, audience: AudienceID()),
          [UInt8](repeating: 0, count: count))
      }
      return Fleet.answer(bulletins).map(\.stamp.number)
    }
    #expect(answer([Int](repeating: 1, count: 20)) == Array(0..<16))
    #expect(answer([8192, 8192, 1]) == [0, 1] && answer([8192, 8193, 1]) == [0] && answer([16_385]).isEmpty)
  }

  @Test func `a device that keeps as many revoked tokens as it can gets all bulletins`() throws {
    var policy = ServicePolicy()
    policy.tokenSeconds = 1000
    let test = try TestFleet(.sqlite, policy: policy)
    try test.setGroups(["north"], capacity: 2)
    try test.revoke(test.issuedToken(TestApp(salt: 1)))
    #expect(try test.bulletins().count == 1)
    test.wait(seconds: 900)
    let late = try (2...3).map { try test.issuedToken(TestApp(salt: $0, created: TestFleet.now + 900)) }
    test.wait(seconds: 100)
    // The first token has expired, so that two are left of the three that were said.
    for token in late { try test.revoke(token) }
    #expect(try test.bulletins().count == 2)
  }

  @Test func `bulletins are listed by one filter at a time`() throws {
    let test = try TestFleet(.sqlite)
    let token = try test.issuedToken(TestApp(salt: 1))
    try test.revoke(token)
    _ = try test.bulletins()
    let (device, other) = (hexadecimal(test.device.deviceID), String(repeating: "0", count: 32))
    let filters = [("device", device), ("token", hexadecimal(token)), ("prover", other)]
    #expect(try filters.map { try test.list("listBulletins", query: [$0]).count } == [1, 1, 0])
    #expect(try test.list("listBulletins").only?["for"]?.text == "front door")
    for index in filters.indices {
      var two = filters
      two.remove(at: index)
      #expect(throws: AdministrationFault.conflict(.severalFilters)) { try test.list("listBulletins", query: two) }
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `revocations for a device with groups are in its first group's bulletins, and again after a change of groups`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let other = try TestFleet.device(2)
    try test.fleet.register(other, label: nil, by: test.owner)
    try test.setGroups(["north", "doors"])
    try test.setGroups(["doors", "north"], of: other)
    let (token, later) = (try test.issuedToken(TestApp(salt: 1)), try test.issuedToken(TestApp(salt: 2)))
    try test.revoke(token)
    let bulletin = try #require(try test.bulletins().only)
    #expect(bulletin.stamp.audience != AudienceID(test.device.deviceID.bytes))
    #expect(try Set(bulletin.says().revoked.keys) == [token])
    #expect(try test.bulletins(for: other) == [bulletin])
    try test.setGroups([])
    test.wait(seconds: 60)
    try test.revoke(later)
    let own = try #require(try test.bulletins().only)
    #expect(own.stamp.audience == AudienceID(test.device.deviceID.bytes))
    #expect(try Set(own.says().revoked.keys) == [token, later])
    #expect(try test.bulletins(for: other) == [bulletin])
    #expect(throws: AdministrationFault.self) { try test.setGroups((0..<9).map { "group \($0)" }) }
    #expect(throws: AdministrationFault.notFound) {
      try test.fleet.set(DeliveryChange(), of: TestFleet.device(3).deviceID, by: test.owner)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `revocations beyond a device's capacity raise its generation instead, again and again`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.setGroups([], capacity: 2)
    var device = TakingDevice(capacity: 2)
    for round: UInt64 in 1...3 {
      let salts = (UInt8(round * 10)...UInt8(round * 10 + 2))
      let tokens = try salts.map { salt in
        try test.issuedToken(TestApp(salt: salt, created: TestFleet.now + (round - 1) * 240))
      }
      for (index, token) in tokens.enumerated() {
        try test.revoke(token)
        try device.visit(test)
        #expect(try device.refuses(token, in: test), "round \(round), token \(index)")
        test.wait(seconds: 60)
      }
      try device.visit(test)
      for token in tokens { #expect(try device.refuses(token, in: test), "round \(round)") }
      test.clock.seconds = TestFleet.now + round * 240
    }
    #expect(device.revoked.count <= 2 && device.generation >= 2)
    let record = try test.perform("showDevice", key: hexadecimal(test.device.deviceID))
    #expect(record["generation"]?.number == device.generation && record["revocation_capacity"]?.number == 2)
    #expect(try test.list("listChanges").contains { $0["action"]?.text == "device.generation" })
  }

  @Test(arguments: TestedDatabase.installed)
  func `a device that a group's revocations fill still learns of its own`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let small = try TestFleet.device(2)
    try test.fleet.register(small, label: nil, by: test.owner)
    try test.setGroups(["north"])
    try test.setGroups(["north"], of: small, capacity: 1)
    for salt: UInt8 in 1...3 { try test.revoke(test.issuedToken(TestApp(salt: salt))) }
    // The group's bulletin is older than the device's own, and a prover begins with the oldest.
    #expect(try test.bulletins().count == 1)
    test.wait(seconds: 1)
    let code = try test.invite(to: small)
    let issued = try #require(
      try test.enrol(TestApp(salt: 9, created: TestFleet.now + 1), for: small, invitation: code).token)
    let token = issued.id
    try test.revoke(token)
    var device = TakingDevice(capacity: 1, id: small.deviceID)
    try device.visit(test)
    #expect(try device.refuses(token, in: test))
    #expect(device.revoked.isEmpty && device.generation == 2)
  }

  @Test(arguments: TestedDatabase.installed)
  func `old bulletins are merged, and a device learns everything wherever it begins`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let tokens = try (0..<60).map { salt in try test.issuedToken(TestApp(salt: salt)) }
    // Device n visits first after n revocations, and then after all.
    var devices = [0, 1, 7, 20, 33, 50, 60].map { (first: $0, device: TakingDevice(capacity: 100)) }
    for (index, token) in tokens.enumerated() {
      for at in devices.indices where devices[at].first == index { try devices[at].device.visit(test) }
      try test.revoke(token)
      test.wait(seconds: 60)
      _ = try test.bulletins()
    }
    for at in devices.indices {
      try devices[at].device.visit(test)
      #expect(Set(devices[at].device.revoked.keys) == Set(tokens), "\(devices[at].first)")
    }
    var device = TakingDevice(capacity: 100)
    try device.visit(test)
    #expect(device.takenCount < 40)
    #expect(try test.bulletins()[0].says().revoked.count > 10)
  }

  @Test(arguments: TestedDatabase.installed)
  func `once most of what a chain says has expired, a complete set replaces it`(database: TestedDatabase) throws {
    var policy = ServicePolicy()
    policy.tokenSeconds = 1000
    let test = try TestFleet(database, policy: policy)
    var device = TakingDevice(capacity: 1000)
    let old = try (0...244).map { salt in try test.issuedToken(TestApp(salt: salt)) }
    for token in old { try test.revoke(token) }
    try device.visit(test)
    #expect(device.revoked.count == 245)
    test.wait(seconds: 950)
    #expect(try test.fleet.raiseGeneration(of: test.device.deviceID, by: test.owner) == 2)
    let kept = try test.issuedToken(TestApp(salt: 250, created: TestFleet.now + 950))
    try test.revoke(kept)
    try device.visit(test)
    test.wait(seconds: 100)
    let token = try test.issuedToken(TestApp(salt: 251, created: TestFleet.now + 1050))
    try test.revoke(token)
    let complete = try #require(try test.bulletins().only)
    #expect(complete.stamp.predecessor == 0 && complete.stamp.number == (TestFleet.now + 1050) * 1000)
    #expect(try Set(complete.says().revoked.keys) == [kept, token] && complete.says().generation == 2)
    try device.visit(test)
    #expect(device.revoked[token] != nil && device.revoked[kept] != nil)
  }

  @Test(arguments: TestedDatabase.installed)
  func `instances at once sign one bulletin`(database: TestedDatabase) async throws {
    let test = try TestFleet(database)
    let fleets = try (0..<4).map { _ in try test.instance() }
    let device = test.device.deviceID
    var seen: Set<UInt64> = []
    for salt: UInt8 in 1...5 {
      try test.revoke(test.issuedToken(TestApp(salt: salt, created: test.clock.seconds ?? 0)))
      let answers = try await withThrowingTaskGroup(of: [IssuedBulletin].self) { group in
        for fleet in fleets { group.addTask { try fleet.bulletins(for: device, above: 0) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(answers.allSatisfy { $0 == answers[0] })
      #expect(Set(answers[0].map(\.stamp.predecessor)).count == Int(salt))
      seen.formUnion(answers.joined().map(\.stamp.number))
      #expect(seen.count == Int(salt))
      test.wait(seconds: 60)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a restored service does not go back, and excludes what it forgot`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let tokens = try (1...2).map { salt in try test.issuedToken(TestApp(salt: salt)) }
    var device = TakingDevice(capacity: 100)
    try test.revoke(tokens[0])
    try device.visit(test)
    let backup = try Backup(of: test.fleet)
    // All this is lost.
    test.wait(seconds: 60)
    try test.revoke(tokens[1])
    let lost = try test.issuedToken(TestApp(salt: 3))
    try device.visit(test)
    let last = try #require(try test.bulletins().last)
    test.wait(seconds: 60)
    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    try backup.restore(into: location, isComplete: false, clock: test.clock)
    let fleet = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    let next = try #require(try fleet.bulletins(for: test.device.deviceID, above: last.stamp.number).only)
    #expect(next.stamp.number > last.stamp.number && next.stamp.predecessor < last.stamp.number)
    #expect(try next.says().generation ?? 0 > 1 << 20)
    device.take(next)
    #expect(try device.refuses(lost, in: test) && device.revoked[tokens[1]] != nil)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a token is revoked under the key that signed it`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let first = try test.issuedToken(TestApp(salt: 1))
    let old = try #require(try test.fleet.issuerKeys().first).id
    let new = try test.fleet.rotateIssuerKey(active: TestFleet.now + 60, by: test.owner)
    test.wait(seconds: 60)
    let second = try test.issuedToken(TestApp(salt: 2, created: TestFleet.now + 60))
    for token in [first, second] { try test.revoke(token) }
    let said = try test.bulletins().map { try $0.says() }
    #expect(said.first { $0.issuer == old }?.revoked.keys.contains(first) == true)
    #expect(said.first { $0.issuer == new }?.revoked.keys.contains(second) == true)
    #expect(said.count == 2)
  }
}
