import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastService
import TestPostgreSQL
import TestSupport
import Testing

/// The audit logs that devices' owners send.
@Suite struct AuditTests {
  /// A log of a device: starts, one after the other, in the encoding of the device.
  static func log(_ device: DeviceDescriptor, count: UInt64, salt: UInt64 = 0) throws -> AuditArchive {
    var cryptography = OpenSSLCryptography()
    var chain = AuditChain()
    var entries: [[UInt8]] = []
    for sequence in 1...count {
      let event: AuditEvent =
        sequence == 3 ? .userActivated(BoundedText("alice" as StaticString)) : .started(bootCount: sequence + salt)
      var bytes = ByteBuffer<512>()
      try AuditEntry(sequence: sequence, time: TestFleet.now + sequence, event: event).encode(into: &bytes)
      entries.append((0..<bytes.bytes.count).map { bytes.bytes[$0] })
      try chain.advance(over: bytes.bytes, using: &cryptography)
    }
    return AuditArchive(deviceID: device.deviceID, base: AuditChain(), end: chain, entries: entries)
  }

  /// The part of a log behind an entry.
  private static func part(_ log: AuditArchive, after: UInt64, through: UInt64) throws -> AuditArchive {
    var cryptography = OpenSSLCryptography()
    var chains = [AuditChain()]
    for entry in log.entries {
      var chain = chains[chains.count - 1]
      try chain.advance(over: entry.span, using: &cryptography)
      chains.append(chain)
    }
    return AuditArchive(
      deviceID: log.deviceID, base: chains[Int(after)], end: chains[Int(through)],
      entries: Array(log.entries[Int(after)..<Int(through)]))
  }

  @Test(arguments: TestedDatabase.installed)
  func `a log is stored once, however often and in whatever parts it comes`(_ database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let log = try Self.log(test.device, count: 10)
    let receive = { (part: AuditArchive) in try test.fleet.receive(part, inPartsOf: 3, by: test.owner) }
    #expect(try receive(try Self.part(log, after: 2, through: 6)) == 4)
    #expect(try receive(try Self.part(log, after: 2, through: 6)) == 0)
    #expect(try receive(try Self.part(log, after: 4, through: 8)) == 2)
    #expect(try receive(log) == 2)
    let numbers = try test.list("listAudits", query: [("limit", "1000")]).compactMap { $0["sequence"]?.number }
    #expect(numbers == [10, 9, 8, 7, 6, 5, 4, 3])
    let device = hex(test.device.deviceID.bytes)
    #expect(try test.list("listAudits", query: [("device", device), ("event", "started")]).count == 7)
    let named = try test.list("listAudits", query: [("user", "alice")])
    #expect(named.map { $0["event"] } == [.string("user-activated")])
    #expect(try test.list("listAudits", query: [("device", String(repeating: "0", count: 32))]).isEmpty)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a log that was changed, has a gap or is of another device changes nothing`(_ database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let log = try Self.log(test.device, count: 10)
    func conflict(_ archive: AuditArchive) -> AdministrationFault? {
      do {
        _ = try test.fleet.receive(archive, inPartsOf: 100, by: test.owner)
        return nil
      } catch { return error }
    }
    let other = try Self.log(TestFleet.device(9), count: 2)
    #expect(conflict(other) == .notFound)
    #expect(conflict(try Self.part(log, after: 0, through: 4)) == nil)
    let before = try test.list("listAudits")
    // The same numbers with other contents, from the beginning and from the known end.
    let forged = try Self.log(test.device, count: 10, salt: 5)
    #expect(conflict(forged) == .conflict(.forkedLog))
    #expect(conflict(try Self.part(forged, after: 4, through: 10)) == .conflict(.forkedLog))
    #expect(conflict(try Self.part(forged, after: 1, through: 3)) == .conflict(.forkedLog))
    #expect(conflict(try Self.part(log, after: 5, through: 10)) == .conflict(.gapInLog))
    let reordered = AuditArchive(
      deviceID: log.deviceID, base: log.base, end: log.end, entries: Array(log.entries.reversed()))
    #expect(conflict(reordered) == .conflict(.brokenLog))
    let cut = AuditArchive(deviceID: log.deviceID, base: log.base, end: log.end, entries: Array(log.entries.dropLast()))
    #expect(conflict(cut) == .conflict(.brokenLog))
    let noise = AuditArchive(deviceID: log.deviceID, base: log.base, end: log.end, entries: [[1, 2, 3]])
    #expect(conflict(noise) == .conflict(.brokenLog))
    #expect(try test.list("listAudits") == before)
    #expect(conflict(log) == nil)
  }

  @Test(arguments: TestedDatabase.installed)
  func `entries are selected by their time, from one time on and before another`(_ database: TestedDatabase) throws {
    let test = try TestFleet(database)
    _ = try test.fleet.receive(Self.log(test.device, count: 6), inPartsOf: 100, by: test.owner)
    let times = (1...6).map { String(TestFleet.now + $0) }
    let device = hex(test.device.deviceID.bytes)
    let cases: [([(String, String)], [UInt64])] = [
      ([("since", times[3])], [6, 5, 4]), ([("until", times[3])], [3, 2, 1]),
      ([("since", times[1]), ("until", times[2])], [2]), ([("since", times[2]), ("until", times[2])], []),
      ([("since", times[1]), ("device", device), ("event", "user-activated")], [3]),
    ]
    for (query, expected) in cases {
      #expect(try test.list("listAudits", query: query).compactMap { $0["sequence"]?.number } == expected)
    }
    for wrong in ["", "-1", "x", "9007199254740993", "2026-01-01T00:00:00Z"] {
      #expect(throws: AdministrationFault.self) { try test.list("listAudits", query: [("since", wrong)]) }
    }
  }

  @Test func `a request has the same rules as a file`() throws {
    let test = try TestFleet(.sqlite)
    let log = try Self.log(test.device, count: 3)
    let body = JSONValue.object([
      ("device", .string(hex(test.device.deviceID.bytes))), ("after", .integer(0)),
      ("head", .string(String(repeating: "0", count: 64))),
      ("entries", .array(log.entries.map { .string(hexadecimal($0.span)) })),
    ])
    #expect(try test.perform("receiveAudits", body: body) == .object([("stored", .integer(3))]))
    #expect(try test.perform("receiveAudits", body: body) == .object([("stored", .integer(0))]))
    let changes = try test.list("listChanges").compactMap { $0["action"]?.text }
    #expect(changes.count { $0 == "audit.receive" } == 1)
  }
}
