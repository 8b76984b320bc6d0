import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastService
import HoldfastStorage
import Synchronization
import TestSupport
import Testing

/// Orders that a device locks or removes a user, which sealed bulletins bring to it.
@Suite struct UserOrderTests {
  @Test(arguments: TestedDatabase.installed)
  func `users are locked and removed by a bulletin that only their device can read, at most once a minute`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.setGroups(["north"])
    let record = try test.order("lock", "alice", until: TestFleet.now + 5000)
    #expect(record["action"]?.text == "lock" && record["until"]?.number == TestFleet.now + 5000)
    #expect(record["ordered"]?.number == TestFleet.now && record["bulletin"] == .null)
    try test.order("remove", "bob")
    let bulletin = try #require(try test.bulletins().only)
    let said = try bulletin.says()
    #expect(bulletin.stamp.audience == AudienceID(test.device.deviceID.bytes) && said.isSealed)
    #expect(said.users == ["alice": TestFleet.now + 5000, "bob": nil as UInt64?])
    #expect(!bulletin.bytes.contains(subsequence: Array("alice".utf8)))
    #expect(throws: EncodingFault.self) { _ = try Bulletin(bulletin.bytes.span).claims.number }
    try test.order("lock", "carol")
    test.wait(seconds: 59)
    #expect(try test.bulletins() == [bulletin])
    test.wait(seconds: 1)
    let next = try #require(try test.bulletins(above: bulletin.stamp.number).only)
    #expect(next.stamp.predecessor == bulletin.stamp.number)
    #expect(try next.says().users == ["carol": maximumInteger])
    test.wait(seconds: 600)
    #expect(try test.bulletins() == [bulletin, next])
    let orders = try test.list("listUserOrders")
    #expect(orders.compactMap { $0["user"]?.text } == ["alice", "bob", "carol"])
    #expect(
      orders.compactMap { $0["bulletin"]?.number } == [bulletin, bulletin, next].map(\.stamp.number))
    #expect(orders.map { $0["until"] } == [.integer(TestFleet.now + 5000), .null, .null])
    let listed = try test.list("listBulletins", query: [("device", hexadecimal(test.device.deviceID))])
    #expect(listed.compactMap { $0["users"]?.number } == [1, 2])
    let changes = try test.list("listChanges").filter { $0["action"]?.text?.hasSuffix("-user") == true }
    #expect(
      changes.compactMap { $0["action"]?.text } == ["device.lock-user", "device.remove-user", "device.lock-user"])
    #expect(changes.last?["detail"]?.text == "alice until \(Timestamp(unixSeconds: TestFleet.now + 5000))")
    let timeline = try test.list("listTimeline", query: [("device", hexadecimal(test.device.deviceID))])
    #expect(timeline.contains { $0["event"]?.text == "device.remove-user" })
  }

  @Test(arguments: TestedDatabase.installed)
  func `an order that changes is said again, and one that was withdrawn or is over is not`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    var device = TakingDevice(capacity: 100)
    try test.order("lock", "alice", until: TestFleet.now + 100)
    try test.order("lock", "bob")
    try test.order("forget", "bob")
    try device.visit(test)
    #expect(device.userEvents == ["lock alice"])
    try test.order("remove", "alice")
    test.wait(seconds: 60)
    try device.visit(test)
    // A second order within the same second counts as well.
    try test.order("forget", "alice")
    try test.order("remove", "alice")
    try test.order("lock", "carol", until: test.clock.seconds.map { $0 + 10 })
    test.wait(seconds: 60)
    try device.visit(test)
    #expect(device.userEvents == ["lock alice", "remove alice", "remove alice"])
    #expect(throws: AdministrationFault.notFound) { try test.order("forget", "bob") }
    #expect(
      try test.list("listChanges").first { $0["action"]?.text == "device.forget-user" }?["detail"]?.text == "alice")
    // The next order deletes what is over.
    try test.order("lock", "dora")
    #expect(try test.list("listUserOrders").compactMap { $0["user"]?.text } == ["alice", "dora"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `another key says all orders that count, and the key before says none any more`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    _ = try test.issuedToken(TestApp(salt: 1))
    try test.order("remove", "alice")
    try test.order("lock", "bob")
    let old = try #require(try test.bulletins().only)
    try test.order("forget", "bob")
    let new = try test.fleet.rotateIssuerKey(active: TestFleet.now + 60, by: test.owner)
    test.wait(seconds: 60)
    let bulletins = try test.bulletins()
    #expect(bulletins.count == 2 && bulletins.contains(old))
    let said = try #require(try bulletins.map { try $0.says() }.first { $0.issuer == new })
    #expect(said.users == ["alice": nil as UInt64?])
    try test.order("lock", "carol")
    test.wait(seconds: 60)
    #expect(try test.bulletins().last?.says().issuer == new)
    #expect(try test.bulletins().count == 3)
  }

  @Test(arguments: TestedDatabase.installed)
  func `bulletins with users are merged with others, and any number of users goes in parts`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let tokens = try (0..<40).map { salt in try test.issuedToken(TestApp(salt: salt)) }
    var devices = [0, 1, 17, 39].map { (first: $0, device: TakingDevice(capacity: 100)) }
    for (index, token) in tokens.enumerated() {
      for at in devices.indices where devices[at].first == index { try devices[at].device.visit(test) }
      if index % 2 == 0 { try test.revoke(token) } else { try test.order("remove", "user \(10 + index)") }
      test.wait(seconds: 60)
      _ = try test.bulletins()
    }
    for at in devices.indices {
      try devices[at].device.visit(test)
      #expect(devices[at].device.userEvents.count == 20, "\(devices[at].first)")
      #expect(Set(devices[at].device.userEvents).count == 20 && devices[at].device.revoked.count == 20)
    }
    var device = TakingDevice(capacity: 100)
    try device.visit(test)
    #expect(device.takenCount < 30)
    let merged = try #require(try test.bulletins().first?.says())
    #expect(merged.isSealed && merged.revoked.count > 5 && merged.users.count > 5)
    test.wait(seconds: 60)
    let name = String(repeating: "u", count: 29)
    for number in 100..<200 { try test.order("lock", "\(name)\(number)") }
    let parts = try test.bulletins(above: try #require(device.numbers.values.max()))
    #expect(try parts.map { try $0.says().users.count } == [32, 32, 32, 4])
    #expect(parts.dropFirst().map(\.stamp.predecessor) == parts.dropLast().map(\.stamp.number))
  }

  @Test(arguments: TestedDatabase.installed)
  func `a lock that is over is left out when bulletins are merged`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let tokens = try (0..<40).map { salt in try test.issuedToken(TestApp(salt: salt)) }
    try test.order("lock", "alice", until: TestFleet.now + 300)
    try test.order("remove", "bob")
    for token in tokens {
      _ = try test.bulletins()
      try test.revoke(token)
      test.wait(seconds: 60)
    }
    var device = TakingDevice(capacity: 100)
    try device.visit(test)
    #expect(device.userEvents == ["remove bob"] && device.takenCount < 40)
  }

  @Test(arguments: TestedDatabase.installed)
  func `instances at once sign one bulletin with a user`(database: TestedDatabase) async throws {
    let test = try TestFleet(database)
    let fleets = try (0..<4).map { _ in try test.instance() }
    let device = test.device.deviceID
    for number in 1...5 {
      try test.order("lock", "user \(number)")
      let answers = try await withThrowingTaskGroup(of: [IssuedBulletin].self) { group in
        for fleet in fleets { group.addTask { try fleet.bulletins(for: device, above: 0) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(answers.allSatisfy { $0 == answers[0] } && answers[0].count == number)
      #expect(try answers[0].last?.says().users == ["user \(number)": maximumInteger])
      test.wait(seconds: 60)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a restored service goes on with its orders, and does not repeat what its bulletins say`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    var device = TakingDevice(capacity: 100)
    try test.order("remove", "alice")
    try device.visit(test)
    try test.order("lock", "bob")
    let backup = try Backup(of: test.fleet)
    test.wait(seconds: 60)
    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    try backup.restore(into: location, isComplete: false, clock: test.clock)
    let fleet = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    #expect(try test.list("listUserOrders", at: fleet) == test.list("listUserOrders"))
    for bulletin in try fleet.bulletins(for: test.device.deviceID, above: 0) { device.take(bulletin) }
    #expect(device.userEvents == ["remove alice", "lock bob"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `what names no device, no user or no time is refused`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let stranger = try TestFleet.device(2)
    for verb in ["lock", "remove", "forget"] {
      #expect(throws: AdministrationFault.notFound) { try test.order(verb, "alice", of: stranger) }
      #expect(throws: AdministrationFault.notFound) {
        try test.perform("\(verb)DeviceUser", key: "x", body: Self.alice)
      }
      for name in ["", String(repeating: "u", count: 33), "a\u{7}"] {
        #expect(throws: AdministrationFault.self, "\(name)") { try test.order(verb, name) }
      }
      #expect(throws: AdministrationFault.conflict(.tooLong)) {
        try test.order(verb, String(repeating: "\u{1F512}", count: 9))
      }
    }
    for until in [0, TestFleet.now - 1, TestFleet.now] {
      #expect(throws: AdministrationFault.conflict(.pastTime)) { try test.order("lock", "alice", until: until) }
    }
    #expect(throws: AdministrationFault.self) { try test.order("remove", "alice", until: TestFleet.now + 1) }
    #expect(try test.list("listUserOrders").isEmpty && test.bulletins().isEmpty)
    for number in 1...256 { try test.order("lock", "user \(number)") }
    #expect(throws: AdministrationFault.conflict(.tooMany)) { try test.order("lock", "alice") }
    try test.order("remove", "user 256")
    try test.order("forget", "user 1")
    try test.order("lock", "alice")
    let page = try test.perform("listUserOrders", query: [("limit", "200")])
    let next = try #require(page["next"]?.text)
    #expect(try test.list("listUserOrders", query: [("after", next)]).count == 56)
    #expect(throws: AdministrationFault.notFound) { try test.list("listUserOrders", query: [("after", "alice")]) }
  }

  private static let alice = JSONValue.object([("user", .string("alice"))])
}

extension TestFleet {
  /// Orders that a device locks or removes a user, or withdraws the order ("forget").
  @discardableResult
  func order(
    _ verb: String, _ user: String, of device: DeviceDescriptor? = nil, until: UInt64? = nil
  ) throws -> JSONValue {
    let members = [("user", JSONValue.string(user))] + (until.map { [("until", .integer($0))] } ?? [])
    return try perform(
      "\(verb)DeviceUser", key: hexadecimal((device ?? self.device).deviceID), body: .object(members))
  }
}

extension [UInt8] {
  /// Returns whether these bytes occur somewhere.
  fileprivate func contains(subsequence other: [UInt8]) -> Bool {
    count >= other.count && (0...(count - other.count)).contains { self[$0..<($0 + other.count)].elementsEqual(other) }
  }
}
