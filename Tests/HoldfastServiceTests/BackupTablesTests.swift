import Foundation
import HoldfastCore
import HoldfastDatabase
import HoldfastLinux
import HoldfastService
import HoldfastStorage
import TestSupport
import Testing

/// A table as the scripts of the service's schema create it.
private struct SchemaTable {
  /// The number of the script, from 1.
  let version: Int
  let columns: [(name: String, type: String, isReference: Bool)]
  /// The names of the columns of the primary key.
  let key: [String]

  private static let types = ["IDENTITY", "BLOB", "TEXT", "INTEGER"]

  static let all: [String: SchemaTable] = {
    var tables: [String: SchemaTable] = [:]
    for (index, script) in FleetSchema.scripts.map(\.description).enumerated() {
      for part in script.components(separatedBy: "CREATE TABLE ").dropFirst() {
        let body = String(part[..<(part.range(of: ");")?.lowerBound ?? part.endIndex)])
        tables[String(part.prefix { $0 != " " })] = SchemaTable(version: index + 1, body)
      }
    }
    return tables
  }()

  private init(version: Int, _ body: String) {
    self.version = version
    columns = body.drop { $0 != "(" }.dropFirst().split(separator: ",").compactMap { definition in
      let words = definition.split { $0 == " " || $0 == "\n" }.map(String.init)
      guard words.count > 1, Self.types.contains(words[1]) else { return nil }
      return (words[0], words[1], words.contains("REFERENCES"))
    }
    let list = body.range(of: "PRIMARY KEY (").map { body[$0.upperBound...].prefix { $0 != ")" } }
    key = list?.split { $0 == "," || $0 == " " }.map(String.init) ?? [columns[0].name]
  }

  /// Returns a row with columns in this order. Keys rise with its number, in groups of 97 rows that have all columns of a longer key but
  /// the last one in common; references name the row of the same number; everything else falls.
  func row(_ number: Int, _ order: [String]) throws -> [Value] {
    try order.enumerated().map { position, name in
      let column = try #require(columns.first { $0.name == name })
      if name == "algorithm" { return .text("ES256") }
      if column.isReference, position > 0 { return Self.value("BLOB", 0xee, 0, number) }
      guard key.contains(name) else { return Self.value(column.type, 0xff, position, 1000 - number) }
      let isWithinGroup = key.count > 1 && name == key.last
      if isWithinGroup { return Self.value(column.type, 0xff, position, 1000 - number) }
      return Self.value(column.type, 0xee, position, key.count > 1 ? number / 97 : number)
    }
  }

  private static func value(_ type: String, _ first: UInt8, _ position: Int, _ number: Int) -> Value {
    switch type {
    case "BLOB":
      .bytes([first, UInt8(position), UInt8(number >> 8), UInt8(number & 0xff)] + [UInt8](repeating: 0, count: 12))
    case "TEXT": .text("~\(first).\(position).\(10_000 + number)")
    default: .integer(Int64(100_000 * (position + 1) + number))
    }
  }
}

extension [BackupRecord] {
  /// The number of times that each row, encoded, is in each table.
  fileprivate var counts: [String: [[UInt8]: Int]] {
    var counts: [String: [[UInt8]: Int]] = [:]
    var table = ""
    for record in self {
      if case .table(let name) = record { (table, counts[name]) = (name, [:]) }
      guard case .row = record else { continue }
      var bytes: [UInt8] = []
      record.append(to: &bytes)
      counts[table]?[bytes, default: 0] += 1
    }
    return counts
  }

  /// The records of some tables with rows added to each, and the end.
  fileprivate func keeping(
    where isKept: (String) -> Bool, adding more: (String) throws -> [[Value]] = { _ in [] }
  ) throws -> [BackupRecord] {
    var kept: [BackupRecord] = []
    var isInside = false
    for record in self {
      if case .table(let name) = record {
        isInside = isKept(name)
        if isInside { kept += [record] + (try more(name).map { .row($0) }) }
      } else if case .row = record, isInside {
        kept.append(record)
      }
    }
    return kept + [.end(rowCount: 0)]
  }
}

@Suite struct BackupTablesTests {
  /// The records of a service that was restored from records of a version.
  private func restored(_ records: [BackupRecord], version: Int) throws -> [BackupRecord] {
    let folder = try TemporaryFolder()
    let location = try TestedDatabase.sqlite.newLocation(in: folder)
    let clock = TestClock(seconds: TestFleet.now)
    try Backup(records, version: version).restore(into: location, isComplete: true, clock: clock)
    let fleet = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: clock)
    return try Backup(of: fleet).records()
  }

  @Test func `a backup has every column of every table`() throws {
    var expected = SchemaTable.all.mapValues { Set($0.columns.map(\.name)) }
    try #require(expected.count == 40)
    // Sessions end with a restore, as operators' tokens do.
    expected["sessions"] = nil
    #expect(Set(BackupTable.all.map(\.name)) == Set(expected.keys))
    for table in BackupTable.all {
      #expect(Set(Self.columns(of: table)) == expected[table.name], "\(table.name)")
    }
  }

  @Test func `a backup of each version of the schema has the tables of that version`() throws {
    let (test, _) = try BackupTests.full(.sqlite)
    let records = try Backup(of: test.fleet).records()
    let before = records.counts
    for version in 1...FleetSchema.scripts.count {
      func isKnown(_ name: String) -> Bool { SchemaTable.all[name].map { $0.version <= version } ?? false }
      let after = try restored(records.keeping(where: isKnown), version: version).counts
      for (name, rows) in before {
        let kept = try #require(after[name])
        if isKnown(name) {
          #expect(rows.allSatisfy { kept[$0.key] == 1 }, "\(name), version \(version)")
        } else {
          #expect(kept.isEmpty, "\(name), version \(version)")
        }
      }
    }
  }

  @Test func `of more rows than are read at once, a backup has each one once`() throws {
    let names = Dictionary(uniqueKeysWithValues: BackupTable.all.map { ($0.name, Self.columns(of: $0)) })
    let test = try TestFleet(.sqlite)
    let records = try Backup(of: test.fleet).records().keeping(where: { _ in true }) { name in
      // A service opens each of its keys.
      guard name != "keys", let order = names[name], let table = SchemaTable.all[name] else { return [] }
      return try (0..<520).map { try table.row($0, order) }
    }
    let before = records.counts
    let after = try restored(records, version: FleetSchema.scripts.count).counts
    for (name, rows) in before where name != "changes" {
      #expect(name == "keys" || rows.count >= 520)
      #expect(after[name] == rows, "\(name)")
    }
    // The last change is that it was restored.
    let changes = try #require(after["changes"])
    #expect(changes.count == (before["changes"]?.count ?? 0) + 1 && changes.values.allSatisfy { $0 == 1 })
  }

  private static func columns(of table: BackupTable) -> [String] {
    table.insert.description.drop { $0 != "(" }.dropFirst().prefix { $0 != ")" }
      .split { $0 == "," || $0 == " " || $0 == "\n" }.map(String.init)
  }

  @Test func `a file that ends within its first bytes is no backup`() throws {
    let test = try TestFleet(.sqlite)
    let whole = try Backup(of: test.fleet).bytes
    let folder = try TemporaryFolder()
    let location = try TestedDatabase.sqlite.newLocation(in: folder)
    for count in 0..<BackupSealing.headerByteCount {
      #expect(throws: BackupFault.notABackup) {
        try Backup(Array(whole[..<count])).restore(into: location, isComplete: true, clock: test.clock)
      }
    }
  }

  /// Seals records behind the start of a backup: the version 1 and the time 0.
  private func sealed(_ records: [UInt8], with key: borrowing ServiceKey) throws -> BackupReader {
    var random = SystemRandom()
    let sealing = try BackupSealing.writing(with: key, random: &random)
    let start: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1] + Self.zeros
    let file = try sealing.header + sealing.seal(start + records, isLast: true)
    var rest = file[...]
    return try BackupReader(with: key) { count in
      let part = Array(rest.prefix(count))
      rest = rest.dropFirst(count)
      return part
    }
  }

  private static let zeros = [UInt8](repeating: 0, count: 8)
  /// Another kind of record, another kind of value, an end after another number of rows, and one with something behind it.
  private static let strange: [[UInt8]] = [
    [0x58] + zeros, [0x52, 1, 4] + zeros, [0x45, 0, 0, 0, 0, 0, 0, 0, 1], [0x45] + zeros + [0],
  ]

  @Test(arguments: strange)
  func `sealed records of another form are damaged`(records: [UInt8]) throws {
    let key = ServiceKey(secret(TestFleet.serviceKey))
    let reader = try sealed(records, with: key)
    #expect(reader.version == 1 && reader.moment == 0)
    #expect(throws: BackupFault.damaged) { try reader.next() }
    let whole = try sealed([0x45] + Self.zeros, with: key)
    #expect(try whole.next() == .end(rowCount: 0))
  }
}
