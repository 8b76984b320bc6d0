import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastService
import HoldfastStorage
import Synchronization
import TestSupport
import Testing

/// Minimum versions of apps, which operators raise and bulletins bring to devices.
@Suite struct MinimumVersionTests {
  @Test(arguments: TestedDatabase.installed)
  func `a minimum version only rises, and is in the next bulletin, at most once a minute`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.approveVersions(2...4)
    let record = try test.raise(2)
    #expect(record["for"]?.text == "front door" && record["app"]?.text == "app" && record["bulletin"] == .null)
    #expect(record["raised"]?.number == TestFleet.now)
    let first = try #require(try test.bulletins().only)
    #expect(first.stamp.audience == AudienceID(test.device.deviceID.bytes) && first.stamp.predecessor == 0)
    #expect(try first.says().versions == ["app": TestFleet.version(2)] && !first.says().isSealed)
    #expect(try test.list("listMinimumVersions").only?["bulletin"]?.number == first.stamp.number)
    // The same version changes nothing, and is no entry in the log of changes.
    _ = try test.raise(2)
    #expect(throws: AdministrationFault.conflict(.lowerVersion)) { try test.raise(1) }
    _ = try test.raise(3)
    test.wait(seconds: 59)
    #expect(try test.bulletins() == [first])
    _ = try test.raise(4)
    test.wait(seconds: 1)
    let second = try #require(try test.bulletins(above: first.stamp.number).only)
    #expect(second.stamp.predecessor == first.stamp.number)
    #expect(try second.says().versions == ["app": TestFleet.version(4)])
    #expect(throws: AdministrationFault.conflict(.lowerVersion)) { try test.raise(3) }
    test.wait(seconds: 600)
    #expect(try test.bulletins() == [first, second])
    let changes = try test.list("listChanges").filter { $0["action"]?.text == "device.minimum-version" }
    #expect(changes.compactMap { $0["detail"]?.text } == ["app 4.0.0", "app 3.0.0", "app 2.0.0"])
    #expect(changes.allSatisfy { $0["object"]?.text == hexadecimal(test.device.deviceID) })
    let listed = try test.list("listBulletins", query: [("device", hexadecimal(test.device.deviceID))])
    #expect(listed.compactMap { $0["minimum_versions"]?.number } == [1, 1])
  }

  @Test(arguments: TestedDatabase.installed)
  func `a version that would exclude every approved executable is refused, because it would stay`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    #expect(throws: AdministrationFault.conflict(.unapprovedVersion)) { try test.raise(2) }
    #expect(throws: AdministrationFault.conflict(.unapprovedVersion)) { try test.raise(0, of: "another app") }
    try test.approveVersions(2...2)
    _ = try test.perform(
      "withdrawImage", key: String(repeating: "02", count: 32), body: .object([("reason", .string("bad"))]))
    #expect(throws: AdministrationFault.conflict(.unapprovedVersion)) { try test.raise(2) }
    #expect(try test.raise(1)["version"] == .array([.integer(1), .integer(0), .integer(0)]))
  }

  @Test(arguments: TestedDatabase.installed)
  func `what names no device, no group or no version changes nothing`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.setGroups(["north"])
    let device = JSONValue.string(hexadecimal(test.device.deviceID))
    let stranger = JSONValue.string(hexadecimal(try TestFleet.device(2).deviceID))
    let (app, version) = (JSONValue.string("app"), TestFleet.members(1))
    let body = { (members: [(String, JSONValue)]) in
      _ = try test.perform("raiseMinimumVersion", body: .object([("app", app), ("version", version)] + members))
    }
    #expect(throws: AdministrationFault.notFound) { try body([("device", stranger)]) }
    #expect(throws: AdministrationFault.notFound) { try body([("group", .string("south"))]) }
    let both = [("device", device), ("group", JSONValue.string("north"))]
    let mistakes: [[(String, JSONValue)]] = [
      [], both, [("group", .string(""))], [("device", .string("00"))], [("device", device), ("more", .null)],
    ]
    for members in mistakes { #expect(Self.isMistake { try body(members) }, "\(members)") }
    for numbers: [JSONValue] in [[], [.integer(1)], Array(repeating: .integer(1), count: 4), [.string("1")]] {
      let members = [("device", device), ("app", app), ("version", JSONValue.array(numbers))]
      let isMistake = Self.isMistake { _ = try test.perform("raiseMinimumVersion", body: .object(members)) }
      #expect(isMistake, "\(numbers)")
    }
    #expect(throws: AdministrationFault.conflict(.tooLong)) {
      try test.raise(1, of: String(repeating: "\u{1F512}", count: 17))
    }
    #expect(try test.list("listMinimumVersions").isEmpty && test.bulletins().isEmpty)
    // One bulletin names all apps of an audience: 16.
    for number: UInt8 in 1...17 {
      let image: [UInt8] = Array(repeating: 0x80 + number, count: 32)
      try test.fleet.approve(
        fixed(image), subject: try #require(BoundedText("app \(number)")), version: TestFleet.version(1),
        keys: try TestApp.keys(), by: test.owner)
      guard number == 17 else {
        _ = try test.raise(1, of: "app \(number)", group: "north")
        continue
      }
      #expect(throws: AdministrationFault.conflict(.tooMany)) { try test.raise(1, of: "app 17", group: "north") }
    }
    #expect(try test.bulletins().only?.says().versions.count == 16)
  }

  private static func isMistake(_ body: () throws -> Void) -> Bool {
    do { try body() } catch {
      if case .mistake? = error as? AdministrationFault { return true }
    }
    return false
  }

  @Test(arguments: TestedDatabase.installed)
  func `a group's minimum version is for all its devices, also for those that come later`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.approveVersions(2...3)
    let (other, stranger) = (try TestFleet.device(2), try TestFleet.device(3))
    for device in [other, stranger] { try test.fleet.register(device, label: nil, by: test.owner) }
    try test.setGroups(["doors", "north"])
    #expect(try test.raise(2, group: "north")["for"]?.text == "north")
    let bulletin = try #require(try test.bulletins().only)
    #expect(bulletin.stamp.audience != AudienceID(test.device.deviceID.bytes))
    try test.setGroups(["north"], of: other)
    #expect(try test.bulletins(for: other) == [bulletin] && test.bulletins(for: stranger).isEmpty)
    _ = try test.raise(3)
    let (own, all) = (hexadecimal(test.device.deviceID), try test.list("listMinimumVersions"))
    #expect(all.count == 2)
    #expect(try test.list("listMinimumVersions", query: [("device", own)]).count == 2)
    let listed = try test.list("listMinimumVersions", query: [("device", hexadecimal(other.deviceID))])
    #expect(listed.only?["for"]?.text == "north" && listed.only?["version"] == TestFleet.members(2))
    // Page by page, it is the same.
    let page = try test.perform("listMinimumVersions", query: [("limit", "1")])
    let next = try #require(page["next"]?.text)
    let rest = try test.perform("listMinimumVersions", query: [("limit", "1"), ("after", next)])
    #expect(try #require(page["items"]?.elements) + #require(rest["items"]?.elements) == all && rest["next"] == .null)
    #expect(
      try test.list("listChanges").first { $0["action"]?.text == "group.minimum-version" }?["object"]?.text == "north")
  }

  @Test(arguments: TestedDatabase.installed)
  func `of operators at once, none lowers what another has raised`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.approveVersions(2...9)
    let (fleets, device) = (try (0..<4).map { _ in try test.instance() }, test.device.deviceID)
    let outcomes = Mutex<[UInt64: String]>([:])
    let threads = try fleets.indices.map { index in
      let fleet = fleets[index]
      return try HoldfastLinux.Thread {
        for number in [UInt64(index) + 2, UInt64(index) + 6] {
          let outcome = TestFleet.outcome { try TestFleet.raise(number, of: "app", for: device, at: fleet) }
          outcomes.withLock { $0[number] = outcome }
        }
      }
    }
    for thread in threads { thread.join() }
    let found = outcomes.withLock { $0 }
    #expect(found.count == 8 && found[9] == "raised")
    #expect(found.values.allSatisfy { ["raised", "lowerVersion"].contains($0) }, "\(found)")
    #expect(try test.list("listMinimumVersions").only?["version"] == TestFleet.members(9))
    // What the log of changes says only rises, too.
    let changes = try test.list("listChanges").filter { $0["action"]?.text == "device.minimum-version" }
    let details = changes.compactMap { $0["detail"]?.text }.reversed()
    #expect(Array(details) == details.sorted() && details.count == found.values.count { $0 == "raised" })
    let signed = Mutex<[[IssuedBulletin]]>([])
    let couriers = try fleets.map { fleet in
      try HoldfastLinux.Thread {
        let bulletins = (try? fleet.bulletins(for: device, above: 0)) ?? []
        signed.withLock { $0.append(bulletins) }
      }
    }
    for courier in couriers { courier.join() }
    let answers = signed.withLock { $0 }
    #expect(answers.count == 4 && answers.allSatisfy { $0 == answers[0] } && answers[0].count == 1)
    #expect(try answers[0][0].says().versions == ["app": TestFleet.version(9)])
  }

  @Test(arguments: TestedDatabase.installed)
  func `old bulletins are merged with the highest versions, wherever a device begins`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.approveVersions(2...50)
    let tokens = try (100..<150).map { salt in try test.issuedToken(TestApp(salt: UInt8(salt))) }
    var devices = [0, 1, 7, 20, 33, 47, 49].map { (first: $0, device: TakingDevice(capacity: 100)) }
    for index in 0..<49 {
      for at in devices.indices where devices[at].first == index { try devices[at].device.visit(test) }
      _ = try test.raise(UInt64(index) + 2)
      if index % 3 == 0 { try test.revoke(tokens[index]) }
      test.wait(seconds: 60)
      _ = try test.bulletins()
    }
    for at in devices.indices {
      try devices[at].device.visit(test)
      let device = devices[at].device
      #expect(device.versions.values.map { $0 } == [["app": TestFleet.version(50)]], "\(devices[at].first)")
      #expect(device.revoked.count == 17, "\(devices[at].first)")
    }
    var device = TakingDevice(capacity: 100)
    try device.visit(test)
    #expect(device.takenCount < 35)
    let oldest = try #require(try test.bulletins().first)
    let version = try #require(try oldest.says().versions["app"])
    #expect(try version > TestFleet.version(10) && oldest.says().revoked.count > 3)
    let listed = try test.list("listBulletins", query: [("limit", "1000")])
    #expect(listed.first { $0["number"]?.number == oldest.stamp.number }?["minimum_versions"]?.number == 1)
  }

  @Test(arguments: TestedDatabase.installed)
  func `merged bulletins stay within their limits, with the longest names and many tokens`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let names = (10..<26).map { String(repeating: "n", count: 62) + "\($0)" }
    let last = AppVersion(major: maximumInteger, minor: maximumInteger, patch: maximumInteger)
    for (index, name) in names.enumerated() {
      let image = [UInt8](repeating: UInt8(index), count: 32)
      try test.fleet.approve(
        fixed(image), subject: try #require(BoundedText(name)), version: last, keys: try TestApp.keys(), by: test.owner)
    }
    var early = TakingDevice(capacity: 1000)
    let tokens = try (0..<200).map { salt in try test.issuedToken(TestApp(salt: UInt8(salt))) }
    for index in 0..<40 {
      for token in tokens[(index * 5)..<(index * 5 + 5)] { try test.revoke(token) }
      if index < 16 { _ = try test.raise(last, of: names[index]) }
      test.wait(seconds: 60)
      _ = try test.bulletins()
      if index == 5 { try early.visit(test) }
    }
    var late = TakingDevice(capacity: 1000)
    for _ in 0..<2 { try late.visit(test) }
    try early.visit(test)
    for device in [early, late] {
      #expect(Set(device.revoked.keys) == Set(tokens) && device.versions.values.first?.count == 16)
    }
    #expect(late.takenCount < 30)
    #expect(try test.bulletins()[0].says().versions.count > 8)
  }

  @Test func `a device has 16 minimum versions, and each of them may still be raised`() throws {
    let test = try TestFleet(.sqlite)
    let versions = [1, 2].map { AppVersion(major: $0, minor: 0, patch: 0) }
    for (index, version) in (0..<34).map({ ($0, versions[$0 % 2]) }) {
      try test.fleet.approve(
        fixed([UInt8](repeating: UInt8(index), count: 32)), subject: try #require(BoundedText("app \(index / 2)")),
        version: version, keys: try TestApp.keys(), by: test.owner)
    }
    for index in 0..<16 { _ = try test.raise(versions[0], of: "app \(index)") }
    #expect(throws: AdministrationFault.conflict(.tooMany)) { try test.raise(versions[0], of: "app 16") }
    _ = try test.raise(versions[1], of: "app 3")
    #expect(try test.list("listMinimumVersions").count == 16)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a minimum version is said under every key whose tokens count`(database: TestedDatabase) throws {
    var policy = ServicePolicy()
    policy.tokenSeconds = 1000
    let test = try TestFleet(database, policy: policy)
    try test.approveVersions(2...4)
    let old = try #require(try test.fleet.issuerKeys().first).id
    _ = try test.raise(2)
    #expect(try test.bulletins().map { try $0.says().issuer } == [old])
    _ = try test.issuedToken(TestApp(salt: 1))
    let new = try test.fleet.rotateIssuerKey(active: TestFleet.now + 60, by: test.owner)
    test.wait(seconds: 60)
    var device = TakingDevice(capacity: 100)
    try device.visit(test)
    #expect(device.versions == [old: ["app": TestFleet.version(2)], new: ["app": TestFleet.version(2)]])
    _ = try test.raise(3)
    test.wait(seconds: 60)
    try device.visit(test)
    #expect(device.versions == [old: ["app": TestFleet.version(3)], new: ["app": TestFleet.version(3)]])
    // Tokens of the old key have expired.
    test.wait(seconds: 1000)
    _ = try test.raise(4)
    #expect(try test.bulletins().map { try $0.says().issuer } == [new, new, new])
    let signers = try test.list("listBulletins").compactMap { $0["signer"]?.text }
    #expect(signers.count { $0 == hexadecimal(old) } == 2 && signers.count == 5)
    try device.visit(test)
    #expect(device.versions == [old: ["app": TestFleet.version(3)], new: ["app": TestFleet.version(4)]])
  }

  @Test(arguments: TestedDatabase.installed)
  func `a restored service knows its minimum versions, and devices keep those that it lost`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.approveVersions(2...5)
    var device = TakingDevice(capacity: 100)
    _ = try test.raise(3)
    try device.visit(test)
    _ = try test.raise(4)
    let backup = try Backup(of: test.fleet)
    // All this is lost.
    test.wait(seconds: 60)
    _ = try test.raise(5)
    try device.visit(test)
    test.wait(seconds: 60)
    for isComplete in [true, false] {
      let folder = try TemporaryFolder()
      let fleet = try backup.restored(in: folder, on: database, isComplete: isComplete, clock: test.clock)
      #expect(try test.list("listMinimumVersions", at: fleet).only?["version"] == TestFleet.members(4))
      #expect(throws: AdministrationFault.conflict(.lowerVersion)) { try test.raise(3, at: fleet) }
      let id = test.device.deviceID
      var fresh = TakingDevice(capacity: 100)
      for bulletin in try fleet.bulletins(for: id, above: 0) { fresh.take(bulletin) }
      #expect(fresh.versions.values.first == ["app": TestFleet.version(4)])
      var returning = device
      for bulletin in try fleet.bulletins(for: id, above: 0) { returning.take(bulletin) }
      #expect(returning.versions.values.first == ["app": TestFleet.version(5)])
      #expect(returning.takenCount > device.takenCount)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a complete set says minimum versions and users again`(database: TestedDatabase) throws {
    var policy = ServicePolicy()
    policy.tokenSeconds = 1000
    let test = try TestFleet(database, policy: policy)
    try test.approveVersions(2...2)
    _ = try test.raise(2)
    try test.order("lock", "alice")
    try test.order("remove", "bob")
    for salt: UInt8 in 0...244 { try test.revoke(test.issuedToken(TestApp(salt: salt))) }
    var device = TakingDevice(capacity: 1000)
    try device.visit(test)
    #expect(device.userEvents == ["lock alice", "remove bob"] && device.revoked.count == 245)
    test.wait(seconds: 1050)
    try test.order("forget", "alice")
    try test.order("lock", "carol")
    let set = try test.bulletins()
    try #require(set.count == 2)
    #expect(set[0].stamp.predecessor == 0)
    #expect(try set[0].says().versions == ["app": TestFleet.version(2)] && set[0].says().revoked.isEmpty)
    #expect(try set[1].says().isSealed && Set(set[1].says().users.keys) == ["bob", "carol"])
    var fresh = TakingDevice(capacity: 1000)
    try fresh.visit(test)
    #expect(fresh.userEvents == ["remove bob", "lock carol"] && fresh.versions == device.versions)
  }
}

extension TestFleet {
  static func version(_ major: UInt64) -> AppVersion { AppVersion(major: major, minor: 0, patch: 0) }

  static func members(_ major: UInt64) -> JSONValue { members(version(major)) }

  private static func members(_ version: AppVersion) -> JSONValue {
    .array([version.major, version.minor, version.patch].map { .integer($0) })
  }

  /// Approves an executable of each version of the app.
  func approveVersions(_ majors: ClosedRange<UInt8>) throws {
    for major in majors { try approve(Array(repeating: major, count: 32), version: Self.version(UInt64(major))) }
  }

  /// Raises the minimum version of an app for the device, or for a group.
  @discardableResult
  func raise(_ major: UInt64, of app: String = "app", group: String? = nil, at fleet: Fleet? = nil) throws -> JSONValue
  {
    try Self.raise(Self.version(major), of: app, for: device.deviceID, group: group, at: fleet ?? self.fleet)
  }

  func raise(_ version: AppVersion, of app: String) throws -> JSONValue {
    try Self.raise(version, of: app, for: device.deviceID, at: fleet)
  }

  fileprivate static func raise(_ major: UInt64, of app: String, for device: DeviceID, at fleet: Fleet) throws {
    _ = try raise(version(major), of: app, for: device, at: fleet)
  }

  private static func raise(
    _ version: AppVersion, of app: String, for device: DeviceID, group: String? = nil, at fleet: Fleet
  ) throws -> JSONValue {
    let target = group.map { ("group", JSONValue.string($0)) } ?? ("device", .string(hexadecimal(device)))
    let operation = try #require(AdministrationOperation.all.first { $0.name == "raiseMinimumVersion" })
    return try operation.perform(
      fleet, by: .local("owner"), key: nil,
      body: .object([target, ("app", .string(app)), ("version", members(version))]))
  }

  /// Runs a change, and returns whether it was made, or why not.
  fileprivate static func outcome(_ body: () throws -> Void) -> String {
    do {
      try body()
      return "raised"
    } catch {
      if case .conflict(let conflict)? = error as? AdministrationFault { return conflict.rawValue }
      return "\(error)"
    }
  }
}
