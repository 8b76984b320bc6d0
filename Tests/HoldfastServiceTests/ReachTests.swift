import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastService
import TestSupport
import Testing

/// The way of a revocation from the service to the devices, and the timeline of a device.
@Suite struct ReachTests {
  @Test(arguments: TestedDatabase.installed)
  func `a stolen phone's path goes from the revocation to each device that knows it`(_ database: TestedDatabase) throws
  {
    let test = try TestFleet(database)
    let token = try test.issuedToken(TestApp(salt: 1))
    #expect(try test.list("listReach").isEmpty)
    let prover = try #require(try test.list("listTokens").first?["prover"]?.text)
    _ = try test.perform("revokeProver", key: prover, body: .object([("reason", .string("stolen"))]))
    let unsigned = try #require(try test.list("listReach", query: [("prover", prover)]).first)
    #expect(unsigned["token"]?.text == hexadecimal(token) && unsigned["revoked"]?.number == TestFleet.now)
    #expect(unsigned["bulletin"] == .null && unsigned["known"] == .null)
    test.wait(seconds: 10)
    let bulletin = try #require(try test.fleet.bulletins(for: test.device.deviceID, above: 0).first)
    let signed = try #require(try test.list("listReach", query: [("token", hexadecimal(token))]).first)
    #expect(signed["bulletin"]?.number == bulletin.stamp.number && signed["known"] == .null)
    // One that is older than the revocation says nothing about it, and neither does one for others.
    var log = TakingLog(test)
    try log.take(bulletin.stamp.number - 1, for: test.device.deviceID)
    try log.take(bulletin.stamp.number + 1, for: TestFleet.device(9).deviceID)
    try log.send()
    #expect(try test.list("listReach").first?["known"] == .null)
    try log.take(bulletin.stamp.number, for: test.device.deviceID)
    try log.take(bulletin.stamp.number + 5, for: test.device.deviceID)
    try log.send()
    #expect(try test.list("listReach").first?["known"]?.number == TestFleet.now + 3)
    let taken = try test.list("listDeliveries").first?["taken"]
    #expect(taken == .object([("device", .string(String(bulletin.stamp.number + 5)))]))
    #expect(try test.list("listReach", query: [("token", String(repeating: "0", count: 32))]).isEmpty)
    #expect(throws: AdministrationFault.conflict(.severalFilters)) {
      try test.list("listReach", query: [("token", hexadecimal(token)), ("prover", prover)])
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a bulletin that was merged later has said what it said`(_ database: TestedDatabase) throws {
    let test = try TestFleet(database)
    var first: UInt64 = 0
    for salt in 1...40 {
      try test.fleet.revoke(
        token: test.issuedToken(TestApp(salt: UInt8(salt), created: test.clock.seconds ?? 0)), reason: "lost",
        by: test.owner)
      let newest = try test.fleet.bulletins(for: test.device.deviceID, above: first)
      if salt == 1 { first = try #require(newest.first?.stamp.number) }
      test.wait(seconds: 61)
    }
    let oldest = try #require(try test.fleet.bulletins(for: test.device.deviceID, above: 0).first?.stamp.number)
    try #require(oldest > first, "nothing was merged")
    var log = TakingLog(test)
    try log.take(first, for: test.device.deviceID)
    try log.send()
    let reach = try test.list("listReach", query: [("limit", "1000")])
    #expect(reach.count == 40 && reach.count { $0["known"]?.number == TestFleet.now + 1 } == 1)
    #expect(reach.count { $0["bulletin"]?.number == first } == 1)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a token that a higher generation excludes is known with its bulletin`(_ database: TestedDatabase) throws {
    let test = try TestFleet(database)
    _ = try test.issuedToken(TestApp(salt: 1))
    try test.fleet.revoke(device: test.device.deviceID, reason: "broken", by: test.owner)
    let bulletin = try #require(try test.fleet.bulletins(for: test.device.deviceID, above: 0).first)
    var log = TakingLog(test)
    try log.take(bulletin.stamp.number, for: test.device.deviceID)
    try log.send()
    let reach = try #require(try test.list("listReach").first)
    #expect(reach["bulletin"]?.number == bulletin.stamp.number && reach["known"]?.number == TestFleet.now + 1)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a device's timeline has its bulletins, pages, receipts and forks by time`(_ database: TestedDatabase) throws {
    let home = try TestHome(database)
    let test = home.test
    let id = hexadecimal(test.device.deviceID)
    test.wait(seconds: 10)
    try test.fleet.revoke(token: test.issuedToken(TestApp(salt: 1)), reason: "lost", by: test.owner)
    let bulletin = try #require(try test.fleet.bulletins(for: test.device.deviceID, above: 0).first)
    test.wait(seconds: 10)
    try home.expect(try home.bring(0..<4).receipt, covers: 4)
    test.wait(seconds: 10)
    #expect(try home.bring(6..<8).missing == 5)
    test.wait(seconds: 10)
    _ = try home.bring(2..<5, of: TestHome.Log(test.device, salt: 7))
    let events = try test.list("listTimeline", query: [("device", id)])
    #expect(
      events.compactMap { $0["event"]?.text } == [
        "audit.fork", "audit.page", "audit.receipt", "audit.page", "bulletin.issued", "device.add",
      ])
    #expect(events.compactMap { $0["time"]?.number } == [40, 30, 20, 20, 10, 0].map { TestFleet.now + $0 })
    #expect(events[1]["details"]?["detail"]?.text == "entries 7 to 8, behind a gap after entry 4")
    #expect(events[4]["details"]?["number"]?.text == String(bulletin.stamp.number))
    #expect(events[4]["details"]?["for"]?.text == "device" && events[4]["details"]?["revocations"]?.text == "1")
    // Page by page, it is the same.
    var paged: [JSONValue] = []
    var after: String?
    repeat {
      let page = try test.perform(
        "listTimeline", query: [("device", id), ("limit", "2")] + (after.map { [("after", $0)] } ?? []))
      paged += page["items"]?.elements ?? []
      after = page["next"]?.text
    } while after != nil
    #expect(paged == events)
    for after in ["1-2", "-1-2-3", "1-2-3-", "1--2-3", "1-2-x", "1-2-9007199254740992", "1-2-3-4"] {
      #expect(throws: AdministrationFault.notFound, "\(after)") {
        try test.perform("listTimeline", query: [("device", id), ("after", after)])
      }
    }
    #expect(throws: AdministrationFault.self) { try test.perform("listTimeline") }
  }
}

/// The audit log of a device that takes bulletins, as its owner sends it.
private struct TakingLog {
  private let test: TestFleet
  private var base = AuditChain()
  private var end = AuditChain()
  private var entries: [[UInt8]] = []

  init(_ test: TestFleet) { self.test = test }

  mutating func take(_ number: UInt64, for audience: DeviceID) throws {
    var cryptography = OpenSSLCryptography()
    var bytes = ByteBuffer<512>()
    let issuer = try #require(try test.fleet.issuerKeys().first?.id)
    let id = AudienceID(audience.bytes)
    let event = AuditEvent.bulletinTaken(issuer, try #require(id), number: number)
    let sequence = end.count + 1
    try AuditEntry(sequence: sequence, time: TestFleet.now + sequence, event: event).encode(into: &bytes)
    try end.advance(over: bytes.bytes, using: &cryptography)
    entries.append((0..<bytes.bytes.count).map { bytes.bytes[$0] })
  }

  mutating func send() throws {
    let archive = AuditArchive(deviceID: test.device.deviceID, base: base, end: end, entries: entries)
    _ = try test.fleet.receive(archive, inPartsOf: 100, by: test.owner)
    (base, entries) = (end, [])
  }
}
