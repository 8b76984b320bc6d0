import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastService
import TestPostgreSQL
import TestSupport
import Testing

/// The online service as the home of devices' audit logs.
@Suite struct AuditPagesTests {
  @Test func `the state of receipts is said at first, and a change of it a minute after the last report`() {
    var watch = ReceiptWatch()
    var said: [UInt64] = []
    func look(_ state: ReceiptState, _ times: UInt64...) {
      for time in times where watch.reports(state, at: time) { said.append(time) }
    }
    look(.noStandby, 1000, 1001, 5000)
    look(.standby, 1059, 1060, 1061)
    look(.noStandby, 1119, 1120, 1180)
    #expect(said == [1000, 1060, 1120])
  }

  @Test(arguments: TestedDatabase.installed)
  func `pages come in any order, and a receipt covers nothing beyond a gap`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    #expect(try home.bring(3..<6) == .init(missing: 1))
    #expect(try home.listed() == [6, 5, 4])
    let begun = try home.bring(0..<2)
    #expect(begun.missing == 3)
    try home.expect(begun.receipt, covers: 2)
    let whole = try home.bring(2..<3)
    #expect(whole.missing == 7)
    try home.expect(whole.receipt, covers: 6)
    let last = try home.bring(6..<10)
    #expect(last.missing == nil)
    try home.expect(last.receipt, covers: 10)
    try home.expect(try home.bring(0..<2).receipt, covers: 10)
    let log = try home.state()
    #expect(log["missing"]?.number == 0 && log["first_missing"] == .null && log["acknowledged"]?.number == 10)
    #expect(log["pages_taken"]?.number == 4 && log["pages_known"]?.number == 1 && log["pages_refused"]?.number == 0)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a log may begin behind entries that the device no longer has, which are shown as missing`(
    _ database: TestedDatabase
  ) throws {
    let home = try TestHome(database)
    let answer = try home.bring(4..<10, cut: 4)
    #expect(answer.missing == nil)
    try home.expect(answer.receipt, covers: 10)
    #expect(try home.state()["missing"]?.number == 4)
    // A page behind the cut says nothing about the entries between.
    let other = try TestHome(database)
    #expect(try other.bring(6..<8, cut: 4) == .init(missing: 5))
    #expect(try other.state()["complete_through"]?.number == 0)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a fork is recorded and shown, stores nothing, and ends the receipts`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    try home.expect(try home.bring(0..<4).receipt, covers: 4)
    let forged = try TestHome.Log(home.test.device, salt: 7)
    let answer = try home.bring(2..<6, of: forged)
    #expect(answer.receipt == nil && answer.refusedCount == 1)
    #expect(try home.listed() == [4, 3, 2, 1])
    #expect(try home.state()["forked"]?.number == TestFleet.now)
    #expect(try home.bring(2..<6, of: forged).receipt == nil)
    #expect(try home.bring(4..<6).receipt == nil)
    let actions = try home.test.list("listChanges").compactMap { $0["action"]?.text }
    #expect(actions.count { $0 == "audit.fork" } == 1)
  }

  @Test(arguments: TestedDatabase.installed)
  func `an end that entries contradict is a fork, whichever of them comes first`(_ database: TestedDatabase) throws {
    // A log with the same first three entries.
    let home = try TestHome(database)
    let forged = try TestHome.Log(home.test.device, salt: 7, from: 3)
    _ = try home.bring(0..<6)
    #expect(try home.bring(0..<2, of: forged, knowing: 5).refusedCount == 1)
    let other = try TestHome(database)
    _ = try other.bring(0..<2, knowing: 5)
    #expect(try other.bring(2..<5, of: forged).refusedCount == 1)
    #expect(try other.listed() == [2, 1] && other.state()["forked"]?.number == TestFleet.now)
  }

  @Test(arguments: TestedDatabase.installed)
  func `pages of strangers are refused and counted, and spoil no others`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    let page = try home.page(0..<3)
    var changed = page
    changed[40] ^= 1
    let other = try TestFleet.device(9)
    try home.test.fleet.register(other, label: nil, by: home.test.owner)
    let foreign = try home.page(0..<3, by: 9)
    let bad = [[], [1], changed, foreign, Array(page.dropLast()), [UInt8](repeating: 0, count: 3872)]
    for page in bad {
      #expect(try home.bring([page]) == .init(refusedCount: 1))
    }
    #expect(try home.listed().isEmpty)
    let answer = try home.bring([changed, page, foreign])
    try home.expect(answer.receipt, covers: 3)
    #expect(answer.refusedCount == 2)
    #expect(try home.state()["pages_refused"]?.number == UInt64(bad.count) + 2)
    #expect(
      try home.waived.receive(pages: [page], of: TestFleet.device(8).deviceID) == .init(refusedCount: 1))
    // A receipt for the device cannot be had without a page of it.
    #expect(try home.bring([changed]).receipt == nil)
    // What a flood brings within a second is written with the next page.
    #expect(try home.state()["pages_refused"]?.number == UInt64(bad.count) + 2)
    home.test.wait(seconds: 1)
    _ = try home.bring([changed])
    #expect(try home.state()["pages_refused"]?.number == UInt64(bad.count) + 4)
  }

  @Test func `refused pages of 4,096 devices wait, and those of further ones are written at once`() {
    let (pages, now) = (RefusedPages(), TestFleet.now)
    func add(_ number: Int, at now: UInt64) -> UInt64 {
      pages.add(2, of: fixed([UInt8](repeating: 0, count: 14) + [UInt8(number >> 8), UInt8(number & 0xff)]), at: now)
    }
    for number in 0..<RefusedPages.limit { #expect(add(number, at: now) == 2) }
    for number in 0..<RefusedPages.limit { #expect(add(number, at: now) == 0) }
    let next = RefusedPages.limit
    for _ in 0..<2 { #expect(add(next, at: now) == 2) }
    // A second later one of them has been written: it makes room for another one.
    #expect(add(0, at: now + 1) == 4)
    #expect(add(next, at: now + 2) == 2)
    #expect(add(next, at: now + 2) == 0)
    #expect(add(1, at: now + 2) == 4)
  }

  @Test(arguments: TestedDatabase.installed)
  func `operators and couriers bring parts of one log`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    _ = try home.bring(6..<8)
    let archive = home.log.archive
    #expect(try home.test.fleet.receive(archive, inPartsOf: 3, by: home.test.owner) == 8)
    #expect(try home.listed().sorted() == Array(1...10))
    try home.expect(try home.bring(6..<8).receipt, covers: 10)
    #expect(try home.test.fleet.receive(archive, inPartsOf: 3, by: home.test.owner) == 0)
    // A piece beyond a gap is compared as well.
    let other = try TestHome(database)
    _ = try other.bring(6..<8)
    #expect(throws: AdministrationFault.conflict(.forkedLog)) {
      try other.test.fleet.receive(
        TestHome.Log(other.test.device, salt: 7).archive, inPartsOf: 100, by: other.test.owner)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `without a standby there is no receipt unless the operator says so`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    let page = try home.page(0..<3)
    let answer = try home.test.fleet.receive(pages: [page], of: home.test.device.deviceID)
    #expect(answer == .init(missing: 4))
    #expect(try home.listed() == [3, 2, 1] && home.state()["acknowledged"]?.number == 0)
    try home.expect(try home.bring([page]).receipt, covers: 3)
  }

  @Test(arguments: TestedDatabase.installed)
  func `operators are told once whether receipts are signed, and not for each page`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    #expect(try home.test.fleet.receiptChange() == (database == .sqlite ? .oneHost : .asynchronous))
    #expect(try home.waived.receiptChange() == .waived)
    for index in 0..<3 {
      _ = try home.test.fleet.receive(pages: [home.page(index..<index + 1)], of: home.test.device.deviceID)
      home.test.wait(seconds: 3600)
      #expect(try home.test.fleet.receiptChange() == nil && home.waived.receiptChange() == nil)
    }
    #expect(ReceiptState.allCases.filter(\.isSigning) == [.standby, .waived])
  }

  @Test(arguments: TestedDatabase.installed)
  func `receipts are signed by the key for which the page was sealed, also after a change of the key`(
    _ database: TestedDatabase
  ) throws {
    let home = try TestHome(database)
    let before = try home.page(0..<3)
    _ = try home.test.fleet.rotateIssuerKey(active: TestFleet.now + 10, by: home.test.owner)
    home.test.wait(seconds: 20)
    #expect(try home.test.fleet.issuerKeys().count == 2)
    try home.expect(try home.bring([before]).receipt, covers: 3)
    let next = try #require(try home.test.fleet.issuerKeys().last?.point)
    try home.expect(try home.bring([home.page(3..<5, for: next)]).receipt, covers: 5, by: next)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a restored service asks for what it lost, and does not acknowledge it`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    try home.expect(try home.bring(0..<4).receipt, covers: 4)
    let backup = try Backup(of: home.test.fleet)
    try home.expect(try home.bring(4..<8).receipt, covers: 8)
    let folder = try TemporaryFolder()
    let location = try database.newLocation(in: folder)
    try backup.restore(into: location, isComplete: false, clock: home.test.clock)
    let restored = try Fleet(
      location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), receiptsWithoutStandby: true,
      clock: home.test.clock)
    #expect(try restored.agreementKey() == home.test.fleet.agreementKey())
    let answer = try restored.receive(pages: [home.page(8..<10)], of: home.test.device.deviceID)
    #expect(answer.missing == 5)
    try home.expect(answer.receipt, covers: 4)
  }

  @Test(arguments: TestedDatabase.installed)
  func `devices that were not heard from are listed`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    let silent = { (days: String) in try home.test.list("listDevices", query: [("silent_days", days)]).count }
    #expect(try silent("1") == 1)
    let heard = { try home.test.list("listDeliveries").first?["heard"] }
    #expect(try heard() == .null)
    _ = try home.bring(0..<2)
    #expect(try silent("1") == 0 && heard()?.number == TestFleet.now)
    #expect(try home.test.list("listDeliveries", query: [("silent_days", "1")]).isEmpty)
    home.test.wait(seconds: 2 * 86_400)
    #expect(try silent("1") == 1 && silent("3") == 0)
    // A page that was brought before is no sign of the device.
    _ = try home.bring(0..<2)
    #expect(try silent("1") == 1)
    _ = try home.bring(0..<3)
    #expect(try silent("1") == 0)
    #expect(try home.test.list("listDevices").count == 1)
  }
}

/// Receipts need the commit of the entries on a synchronous standby.
@Suite(.enabled(if: PostgreSQLServer.isInstalled, Comment(rawValue: PostgreSQLServer.absence)))
struct AuditReceiptStandbyTests {
  @Test func `a receipt is signed only while there is a synchronous standby`() throws {
    let primary = try PostgreSQLServer()
    try primary.start()
    let location = DatabaseLocation.postgreSQL(url: primary.url(try primary.makeDatabase()))
    let home = try TestHome(location)
    let page = try home.page(0..<3)
    let bring = { try home.test.fleet.receive(pages: [page], of: home.test.device.deviceID).receipt }
    let said = {
      home.test.wait(seconds: 60)
      return try home.test.fleet.receiptChange()
    }
    #expect(try bring() == nil && said() == .asynchronous)
    let standby = try PostgreSQLServer(standbyOf: primary, name: "standby")
    try standby.start()
    try primary.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
    // An asynchronous standby may lack entries.
    #expect(try bring() == nil && said() == nil)
    try primary.configure(["synchronous_standby_names = '*'"])
    try primary.reload()
    try primary.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
    try home.expect(try bring(), covers: 3)
    #expect(try said() == .standby && said() == nil)
    try primary.configure(["synchronous_standby_names = 'another'"])
    try primary.reload()
    try primary.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'async'")
    #expect(try said() == .noStandby)
    try primary.configure(["synchronous_standby_names = ''"])
    try primary.reload()
    try primary.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'async'")
    try primary.wait(until: "SELECT current_setting('synchronous_standby_names') = ''")
    #expect(try bring() == nil && said() == .asynchronous)
  }
}

/// A device's log, and a service that takes its pages and signs receipts without a standby.
final class TestHome {
  let test: TestFleet
  let waived: Fleet
  let log: Log
  private let issuer: P256Point

  convenience init(_ database: TestedDatabase) throws { try self.init(TestFleet(database)) }

  convenience init(_ location: DatabaseLocation) throws { try self.init(TestFleet(at: location)) }

  init(_ test: TestFleet) throws {
    self.test = test
    waived = try Fleet(
      test.location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), receiptsWithoutStandby: true,
      limits: TestFleet.limits, clock: test.clock)
    log = try Log(test.device)
    issuer = try #require(try test.fleet.issuerKeys().first?.point)
  }

  /// Ten entries with the chain before and after each.
  struct Log {
    let archive: AuditArchive
    let chains: [AuditChain]

    init(_ device: DeviceDescriptor, salt: UInt64 = 0, from start: Int = 0) throws {
      let salted = try AuditTests.log(device, count: 10, salt: salt)
      let entries = try AuditTests.log(device, count: 10).entries.prefix(start) + salted.entries.dropFirst(start)
      archive = AuditArchive(deviceID: salted.deviceID, base: salted.base, end: salted.end, entries: Array(entries))
      var cryptography = OpenSSLCryptography()
      var chains = [AuditChain()]
      for entry in archive.entries {
        var chain = chains[chains.count - 1]
        try chain.advance(over: entry.span, using: &cryptography)
        chains.append(chain)
      }
      self.chains = chains
    }
  }

  /// Seals a page as a device does whose private key has the bytes `number`.
  func page(
    _ range: Range<Int>, of log: Log? = nil, knowing count: Int = 10, cut: UInt64 = 0, by number: UInt8 = 1,
    for home: P256Point? = nil
  ) throws -> [UInt8] {
    let log = log ?? self.log
    var page = AuditPage(after: log.chains[range.lowerBound], of: log.chains[count], cut: cut)
    for entry in log.archive.entries[range] {
      let fits = page.append(entry)
      #expect(fits)
    }
    var cryptography = OpenSSLCryptography()
    var key = try P256PrivateKey(scalar: secret([UInt8](repeating: number, count: 32)))
    let home = try AuditHome(of: home ?? issuer)
    let secret = try home.secret(with: test.device.deviceID, test.fleet.agreementKey(), agreement: &key)
    let random: FixedBytes<16> = fixed((0..<16).map { _ in UInt8.random(in: 0...255) })
    return try secret.seal(page, random: random, using: &cryptography)
  }

  func bring(
    _ range: Range<Int>, of log: Log? = nil, knowing count: Int = 10, cut: UInt64 = 0
  ) throws -> AuditPagesAnswer { try bring([page(range, of: log, knowing: count, cut: cut)]) }

  func bring(_ pages: [[UInt8]]) throws -> AuditPagesAnswer {
    try waived.receive(pages: pages, of: test.device.deviceID)
  }

  /// Checks a receipt as the device does.
  func expect(_ receipt: [UInt8]?, covers count: Int, by key: P256Point? = nil) throws {
    let bytes = try #require(receipt)
    let receipt = try AuditReceipt(bytes.span)
    var cryptography = OpenSSLCryptography()
    try receipt.verify(by: key ?? issuer, using: &cryptography)
    let (device, chain) = (receipt.device, receipt.chain)
    #expect(device == test.device.deviceID && chain == log.chains[count])
  }

  func listed() throws -> [UInt64] { try test.list("listAudits").compactMap { $0["sequence"]?.number } }

  func state() throws -> JSONValue { try #require(try test.list("listAuditLogs").first) }
}
