import Foundation
import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastLinux
import HoldfastService
import HoldfastStorage
import Synchronization
import TestSupport
import Testing

/// A backup in memory: what `export` writes and `restore` reads.
final class Backup {
  var bytes: [UInt8] = []
  private var position = 0

  init(_ bytes: [UInt8] = []) { self.bytes = bytes }

  private func clear() -> Bool {
    bytes = []
    return true
  }

  private func append(_ more: [UInt8]) -> Bool {
    bytes += more
    return true
  }

  private func rewind() -> Bool {
    position = 0
    return true
  }

  private func next(_ count: Int) -> [UInt8] {
    let part = Array(bytes[position..<min(position + count, bytes.count)])
    position += part.count
    return part
  }

  convenience init(of fleet: Fleet) throws {
    self.init()
    _ = try fleet.export(begin: { self.clear() }, write: { self.append($0) })
  }

  /// Restores it into an empty database.
  @discardableResult
  func restore(
    into location: DatabaseLocation, key: [UInt8] = TestFleet.serviceKey, isComplete: Bool, clock: TestClock
  ) throws -> Restoration {
    try Fleet.restore(
      into: location, serviceKey: ServiceKey(secret(key)), isComplete: isComplete, by: Actor("restorer"), clock: clock,
      begin: { self.rewind() }, read: { self.next($0) })
  }

  /// Restores it into a new database in `folder`, and opens that.
  func restored(
    in folder: borrowing TemporaryFolder, on database: TestedDatabase, isComplete: Bool, clock: TestClock
  ) throws -> Fleet {
    let location = try database.newLocation(in: folder)
    try restore(into: location, isComplete: isComplete, clock: clock)
    return try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: clock)
  }

  func reader() throws -> BackupReader {
    _ = rewind()
    return try BackupReader(with: ServiceKey(secret(TestFleet.serviceKey)), read: { self.next($0) })
  }

  /// The records, decrypted.
  func records() throws -> [BackupRecord] {
    let reader = try reader()
    var records: [BackupRecord] = []
    while true {
      records.append(try reader.next())
      if case .end = records[records.count - 1] { return records }
    }
  }

  /// Writes records as a service of a version of the schema does.
  convenience init(_ records: [BackupRecord], version: Int) throws {
    self.init()
    var random = SystemRandom()
    let key = ServiceKey(secret(TestFleet.serviceKey))
    let writer = try BackupWriter(
      .writing(with: key, random: &random), version: version, moment: TestFleet.now,
      write: { self.append($0) })
    for record in records.dropLast() { try writer.append(record) }
    _ = try writer.finish()
  }
}

@Suite struct BackupTests {
  private static let listings = [
    "listDevices", "listImages", "listProvers", "listUsers", "listTokens", "listInvitations", "listRequests",
    "listRefusals", "listAudits", "listKeys", "listOperators", "listBulletins", "listDeliveries",
    "listAuditLogs", "listReach", "listMinimumVersions", "listKeyOrders", "listUserOrders",
  ]

  /// A service that has something in every table.
  static func full(_ database: TestedDatabase) throws -> (test: TestFleet, tokens: [StoredToken]) {
    let test = try TestFleet(database)
    try test.fleet.approve(
      Digest(filledWith: 0x55), tree: Digest(filledWith: 0x56), subject: "app", version: .zero,
      keys: try TestApp.keys(), by: test.owner)
    var permission = TokenPermission()
    (permission.user, permission.commands) = ("alice", ["unlock"])
    let first = try test.enrol(TestApp(salt: 1), invitation: test.invite(permission)).token
    let second = try test.enrol(TestApp(salt: 2, host: 2), invitation: test.invite()).token
    _ = try test.enrol(TestApp(salt: 3, host: 3))
    #expect(try test.enrol(TestApp(salt: 4), invitation: InvitationCode("AAAAA-AAAAA-AAAAA-AAAAA")).token == nil)
    try test.fleet.revoke(user: "mallory", reason: "left", by: test.owner)
    _ = try test.fleet.addOperator("olga", scopes: [.read], for: nil, by: test.owner)
    _ = try test.fleet.receive(AuditTests.log(test.device, count: 5), inPartsOf: 2, by: test.owner)
    #expect(try TestHome(test).bring(6..<8).missing == 6)
    try test.fleet.revoke(token: test.issuedToken(TestApp(salt: 200, host: 9)), reason: "lost", by: test.owner)
    var delivery = DeliveryChange()
    delivery.groups = ["north"]
    try test.fleet.set(delivery, of: test.device.deviceID, by: test.owner)
    try test.raise(1, group: "north")
    try test.order("lock", "mallory")
    try test.order("remove", "trudy")
    let next = try test.rotation(after: 86_400).new
    _ = try test.introduce(next.id, until: 90_000, group: "north")
    #expect(try test.bulletins().count == 3)
    return (test, [try #require(first), try #require(second)])
  }

  @Test(arguments: TestedDatabase.installed, TestedDatabase.installed)
  func `a complete backup is the same service in either database`(from: TestedDatabase, into: TestedDatabase) throws {
    let (test, tokens) = try Self.full(from)
    let waiting = try test.invite()
    let backup = try Backup(of: test.fleet)
    let folder = try TemporaryFolder()
    let location = try into.newLocation(in: folder)
    let restoration = try backup.restore(into: location, isComplete: true, clock: test.clock)
    #expect(restoration.moment == TestFleet.now)
    let fleet = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    for name in Self.listings {
      let records = try test.list(name)
      #expect(!records.isEmpty, "\(name)")
      #expect(try test.list(name, at: fleet) == records, "\(name)")
    }
    let changes = try test.list("listChanges", at: fleet)
    #expect(try Array(changes.dropFirst()) == test.list("listChanges"))
    #expect(changes.first?["action"]?.text == "service.restore" && changes.first?["actor"]?.text == "restorer")
    // A lost answer is given again, what was permitted stays so, and the numbers of records go on.
    #expect(try test.enrol(TestApp(salt: 2, host: 2), at: fleet).token == tokens[1])
    #expect(try test.enrol(TestApp(salt: 5), invitation: waiting, at: fleet).token != nil)
    #expect(throws: AdministrationFault.self) {
      try fleet.register(TestFleet.device(1, key: 2), label: nil, by: test.owner)
    }
    _ = try test.enrol(TestApp(salt: 6), invitation: InvitationCode("AAAAA-AAAAA-AAAAA-AAAAA"), at: fleet)
    #expect(try test.list("listRefusals", at: fleet).count == test.list("listRefusals").count + 1)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a restored service accepts nothing of before, because it may have forgotten what became of it`(
    database: TestedDatabase
  ) throws {
    let (test, _) = try Self.full(database)
    let unused = try test.invite()
    let operatorToken = try test.fleet.addOperator("otto", scopes: [.admin], for: nil, by: test.owner)
    let attestation = try test.attest(TestApp(salt: 7))
    let request = try #require(try test.enrol(TestApp(salt: 8)).request)
    try test.fleet.approve(request: request, TokenPermission(), by: test.owner)
    let backup = try Backup(of: test.fleet)
    // After the backup: a token for another device, a higher generation, and a used invitation.
    let other = try TestFleet.device(2)
    try test.fleet.register(other, label: nil, by: test.owner)
    let later = TestApp(salt: 9, created: TestFleet.now + 200)
    #expect(try test.enrol(later, for: other, invitation: test.invite(to: other)).token != nil)
    for _ in 0..<3 { _ = try test.fleet.raiseGeneration(of: test.device.deviceID, by: test.owner) }
    let lost = try test.list("listDevices").compactMap { $0["generation"]?.number }.max() ?? 0

    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    try backup.restore(into: location, isComplete: false, clock: test.clock)
    let fleet = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    let answer = try fleet.issue(attestation: attestation, for: test.device, invitation: unused, wishes: TokenWishes())
    #expect(answer.reasons == ["attestation"])
    for app in [TestApp(salt: 1), TestApp(salt: 8), later, TestApp(salt: 10)] {
      #expect(try fleet.attest(app.evidence(), for: test.device).reasons.contains("notFresh"))
    }
    #expect(try fleet.authenticate(operatorToken) == nil)
    let states = try test.list("listRequests", at: fleet).compactMap { $0["status"]?.text }
    #expect(!states.isEmpty && states.allSatisfy { $0 == "expired" })

    test.wait(seconds: 301)
    let late = TestApp(salt: 11, created: TestFleet.now + 301)
    #expect(try test.enrol(late, invitation: unused, at: fleet).reasons == ["revokedInvitation"])
    let code = try fleet.invite(to: test.device.deviceID, TokenPermission(), for: 60, by: test.owner).code
    let fresh = TestApp(salt: 12, created: TestFleet.now + 301)
    #expect(try test.enrol(fresh, invitation: code, at: fleet).token != nil)
    let generations = try test.list("listTokens", at: fleet).compactMap { $0["generation"]?.number }
    let generation = try #require(generations.max())
    #expect(generation > lost, "a device that saw the generation that was lost would refuse the new token")
  }

  @Test(arguments: TestedDatabase.installed)
  func `a backup that was cut or changed anywhere restores nothing`(database: TestedDatabase) throws {
    let (test, _) = try Self.full(database)
    // More than two chunks.
    for _ in 0..<1600 { try test.fleet.setBlocked(false, test.device.deviceID, by: test.owner) }
    let whole = try Backup(of: test.fleet).bytes
    let chunk = BackupSealing.chunkByteCount + BackupSealing.tagByteCount
    let header = BackupSealing.headerByteCount
    try #require(whole.count > header + 2 * chunk)
    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    func refuses(_ bytes: [UInt8], _ words: String) {
      #expect(throws: BackupFault.self, "\(words)") {
        try Backup(bytes).restore(into: location, isComplete: true, clock: test.clock)
      }
      #expect(throws: FleetFault.notCreated, "\(words)") {
        try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
      }
    }
    // The database has its tables from the first attempt on.
    #expect(throws: BackupFault.damaged) {
      try Backup(Array(whole.dropLast())).restore(into: location, isComplete: true, clock: test.clock)
    }
    let boundaries = [0, 1, header - 1, header, header + 1, header + chunk, header + 2 * chunk, header + chunk + 1]
    for count in boundaries + Array(stride(from: 7, to: whole.count, by: whole.count / 12)) {
      refuses(Array(whole[..<count]), "cut after \(count) bytes")
    }
    for index in [0, header - 1, header - 20, header - 40, header, whole.count - 1]
      + Array(stride(from: 11, to: whole.count, by: whole.count / 12))
    {
      var changed = whole
      changed[index] ^= 1
      refuses(changed, "byte \(index) changed")
    }
    refuses(whole + [0], "extended")
    refuses(whole + whole[header...], "repeated")
    let chunks = [Array(whole[header..<header + chunk]), Array(whole[(header + chunk)..<(header + 2 * chunk)])]
    refuses(Array(whole[..<header]) + chunks[1] + chunks[0] + whole[(header + 2 * chunk)...], "chunks exchanged")
    refuses(Array(whole[..<header]) + whole[(header + chunk)...], "first chunk removed")
    try Backup(whole).restore(into: location, isComplete: true, clock: test.clock)
    _ = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a backup with another key, of a newer version, or for a database in use is refused`(
    database: TestedDatabase
  ) throws {
    let (test, _) = try Self.full(database)
    let backup = try Backup(of: test.fleet)
    let before = try test.list("listChanges")
    #expect(throws: BackupFault.notEmpty) {
      try backup.restore(into: test.location, isComplete: true, clock: test.clock)
    }
    #expect(try test.list("listChanges") == before)
    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    #expect(throws: BackupFault.wrongKey) {
      let key = [UInt8](repeating: 9, count: 32)
      try backup.restore(into: location, key: key, isComplete: true, clock: test.clock)
    }
    let newer = try Backup(backup.records(), version: FleetSchema.scripts.count + 1)
    #expect(throws: BackupFault.newerVersion) {
      try newer.restore(into: location, isComplete: true, clock: test.clock)
    }
    #expect(throws: BackupFault.notABackup) {
      try Backup(Array("{}".utf8)).restore(into: location, isComplete: true, clock: test.clock)
    }
    // The key is right, and the contents are not: a table is missing, or a row has a value too few.
    let records = try backup.records()
    let cut = try #require(records.firstIndex(of: .table("audits")))
    for wrong in [
      Array(records[..<cut]) + [.end(rowCount: 0)], [.table("settings"), .row([.text("policy")]), .end(rowCount: 1)],
    ] {
      #expect(throws: BackupFault.self) {
        try Backup(wrong, version: FleetSchema.scripts.count)
          .restore(into: location, isComplete: true, clock: test.clock)
      }
    }
    #expect(throws: FleetFault.notCreated) {
      try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a backup of an older version is restored, and its schema is brought up to date`(database: TestedDatabase) throws
  {
    let (test, _) = try Self.full(database)
    var records = try Backup(of: test.fleet).records()
    let first = try #require(records.firstIndex(of: .table("audit_chains")))
    records.removeSubrange(first..<records.count - 1)
    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    try Backup(records, version: 1).restore(into: location, isComplete: true, clock: test.clock)
    let fleet = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    #expect(try test.list("listTokens", at: fleet) == test.list("listTokens"))
    #expect(try test.list("listAudits", at: fleet).isEmpty)
    #expect(try fleet.receive(AuditTests.log(test.device, count: 5), inPartsOf: 2, by: test.owner) == 5)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a restored service has the same key and strings, a higher revision and epoch, and no development key`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.setFeatures { $0.secureStrings = true }
    try test.addDomain("api.example")
    _ = try test.perform("setString", body: .object([("name", .string("a")), ("value", .string("b"))]))
    _ = try test.newDevelopmentKey()
    let backup = try Backup(of: test.fleet)
    for isComplete in [true, false] {
      let own = try TemporaryFolder()
      let fleet = try backup.restored(in: own, on: database, isComplete: isComplete, clock: test.clock)
      #expect(try fleet.configurationKey().point == test.fleet.configurationKey().point)
      let claims = try test.claims(.string(fleet.configuration(services: [])), type: "holdfast-configuration+jwt")
      let revision = try #require(claims["revision"]?.number)
      #expect(isComplete ? revision == 3 : revision > 1 << 20)
      #expect((try test.perform("showDevelopmentKey", at: fleet)["added"] == .null) == !isComplete)
      guard isComplete else { continue }
      let answer = try test.fetched(TestApp(salt: 1), at: fleet) { $0.strings = true }
      #expect(answer["strings"] == .object([("a", .string("b"))]))
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a restored service whose revision and epoch were never raised begins far above them`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let own = try TemporaryFolder()
    let location = try database.newLocation(in: own)
    try Backup(of: test.fleet).restore(into: location, isComplete: false, clock: test.clock)
    let fleet = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    let claims = try test.claims(.string(fleet.configuration(services: [])), type: "holdfast-configuration+jwt")
    #expect(try #require(claims["revision"]?.number) > 1 << 20)
    let epoch = try test.perform("rotateMessageKey", body: .object([]), at: fleet)["epoch"]?.number
    #expect(try #require(epoch) > 1 << 20)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a service that an earlier version created makes one key for apps, whichever instance opens it first`(
    database: TestedDatabase
  ) throws {
    let (test, _) = try Self.full(database)
    let records = try Backup(of: test.fleet).records().filter { record in
      guard case .row(let values) = record else { return true }
      return !values.contains(.text("app-tokens"))
    }
    var shortened = Array(records.dropLast())
    shortened.append(.end(rowCount: UInt64(records.count { if case .row = $0 { true } else { false } })))
    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    try Backup(shortened, version: FleetSchema.scripts.count).restore(
      into: location, isComplete: true, clock: test.clock)
    let fleets = try (0..<2).map { _ in
      try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    }
    let point = try fleets[0].configurationKey().point
    #expect(try fleets[1].configurationKey().point == point)
    #expect(try test.fleet.configurationKey().point != point)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a service of an earlier version gets one key for agreement, although several instances start at once`(
    database: TestedDatabase
  ) throws {
    let (test, _) = try Self.full(database)
    var records = try Backup(of: test.fleet).records().filter { record in
      guard case .row(let values) = record else { return true }
      return !values.contains(.text("agreement"))
    }
    records[records.count - 1] = .end(rowCount: UInt64(records.count { if case .row = $0 { true } else { false } }))
    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    try Backup(records, version: FleetSchema.scripts.count).restore(into: location, isComplete: true, clock: test.clock)
    let clock = test.clock
    let points = Mutex<[P256Point?]>([])
    let threads = try (0..<4).map { _ in
      try HoldfastLinux.Thread {
        let key = ServiceKey(secret(TestFleet.serviceKey))
        let point = try? Fleet(location, serviceKey: key, limits: TestFleet.limits, clock: clock).agreementKey()
        points.withLock { $0.append(point) }
      }
    }
    for thread in threads { thread.join() }
    let found = points.withLock { $0 }
    let point = try #require(found.first ?? nil)
    #expect(found == [point, point, point, point])
    #expect(try test.fleet.agreementKey() != point)
    #expect(try test.fleet.issuerKeys().first?.point != point)
  }

  @Test func `a backup whose first chunk has no whole beginning is damaged`() throws {
    let key = ServiceKey(secret(TestFleet.serviceKey))
    for count in [0, 1, 15, 16] {
      var random = SystemRandom()
      let sealing = try BackupSealing.writing(with: key, random: &random)
      let backup = Backup(sealing.header + (try sealing.seal([UInt8](repeating: 0, count: count), isLast: true)))
      if count < 16 {
        #expect(throws: BackupFault.damaged, "\(count) bytes") { _ = try backup.reader() }
      } else {
        #expect(try backup.reader().version == 0)
      }
    }
  }

  @Test func `an export that cannot be written leaves no file`() throws {
    let (test, _) = try Self.full(.sqlite)
    let folder = try TemporaryFolder()
    let path = "\(folder.path)/backup"
    _ = try test.fleet.export(to: path)
    for path in [path, "\(folder.path)/none/backup", "/dev/full/backup"] {
      #expect(throws: BackupFileFault.self) { try test.fleet.export(to: path) }
    }
    #expect(try Files.names(inFolder: folder.path, limit: 100) == ["backup"])
    var count = 0
    #expect(throws: BackupFault.file) {
      _ = try test.fleet.export(
        begin: { true },
        write: { bytes in
          count += bytes.count
          return count < 100
        })
    }
  }
}
