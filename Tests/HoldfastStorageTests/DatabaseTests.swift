import Synchronization
import TestSupport
import Testing

import HoldfastStorage

let testApplicationID: Int32 = 0x486f_6c64
let testSchema: [StaticString] = [
  "CREATE TABLE counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0)) STRICT;",
  "CREATE TABLE blobs (id INTEGER PRIMARY KEY, bytes BLOB) STRICT; CREATE INDEX by_bytes ON blobs (bytes);",
]

/// Opens the database `db` of a folder with the schema of the tests.
func openTestDatabase(in folder: TemporaryFolder, busyTimeoutMilliseconds: Int32 = 0) throws -> Database {
  try Database(
    path: folder.file("db"), applicationID: testApplicationID, schema: testSchema,
    busyTimeoutMilliseconds: busyTimeoutMilliseconds)
}

@Suite struct DatabaseTests {
  let folder: TemporaryFolder
  let database: Database

  init() throws {
    folder = try TemporaryFolder()
    database = try openTestDatabase(in: folder)
  }

  @Test func `every type of value comes back as it was bound`() throws {
    try database.run("CREATE TABLE things (a, b, c, d, e, f, g)")
    try database.run(
      "INSERT INTO things VALUES (?, ?, ?, ?, ?, ?, ?)", .integer(.min), .unsigned(UInt64(Int64.max)),
      .bytes([0, 1, 255]), .bytes([]), .text("Grüße\0 an alle"), .text(""), .null)
    let found = try database.one("SELECT * FROM things") { row throws(DatabaseError) in
      #expect(try row.integer(0) == .min)
      #expect(try row.unsigned(1) == UInt64(Int64.max))
      #expect(try row.bytes(2) == [0, 1, 255])
      #expect(try row.withBytes(2) { span throws(DatabaseError) in span.count } == 3)
      #expect(try row.bytes(3) == [])
      #expect(try row.text(4) == "Grüße\0 an alle")
      #expect(try row.text(5) == "")
      #expect(try row.isNull(6))
      #expect(try !row.isNull(5))
      return true
    }
    #expect(found == true)
  }

  @Test func `rows come back as values, and a floating-point number is none`() throws {
    let rows = try database.values(
      "SELECT ?, ?, ?, ? UNION ALL SELECT 'b', x'', -1, NULL", bindings: [.null, .text("a"), .bytes([1]), .unsigned(7)])
    #expect(rows == [[.null, .text("a"), .bytes([1]), .integer(7)], [.text("b"), .bytes([]), .integer(-1), .null]])
    #expect(throws: DatabaseError.wrongType(column: 1)) { try database.values("SELECT 1, 1.5", bindings: []) }
    #expect(throws: DatabaseError.misuse) { try database.values("SELECT ?", bindings: []) }
  }

  @Test func `scripts and statements are rewritten before they are prepared`() throws {
    let path = folder.file("rewritten")
    let rewriting: (String) -> String = { $0.hasPrefix("MAKE") ? "CREATE" + $0.dropFirst(4) : $0 + " LIMIT 1" }
    let rewritten = try Database(
      path: path, applicationID: 1, schema: ["MAKE TABLE a (b INTEGER)"], check: .skipped, rewriting: rewriting)
    #expect(try rewritten.values("SELECT 1 UNION ALL SELECT 2", bindings: []) == [[.integer(1)]])
    #expect(try rewritten.values("SELECT 1 UNION ALL SELECT 2", bindings: []) == [[.integer(1)]])
    #expect(try rewritten.oneInteger("SELECT count(*) FROM a") == 0)
  }

  @Test func `a span and optional values are bound`() throws {
    let bytes: [UInt8] = [7, 8, 9]
    try database.run("INSERT INTO blobs VALUES (?, ?)", .optional(UInt64(1)), .copying(bytes.span))
    try database.run("INSERT INTO blobs VALUES (2, ?)", .optional(nil as [UInt8]?))
    #expect(try database.oneBytes("SELECT bytes FROM blobs WHERE id = 1") == bytes)
    #expect(try database.oneInteger("SELECT bytes IS NULL FROM blobs WHERE id = 2") == 1)
    try database.run("INSERT INTO counters VALUES (?, 1)", .optional("name" as String?))
    #expect(try database.oneText("SELECT name FROM counters") == "name")
  }

  @Test func `a number above the signed range is refused`() throws {
    #expect(throws: DatabaseError.outOfRange) {
      try database.run("INSERT INTO counters VALUES ('a', ?)", .unsigned(UInt64(Int64.max) + 1))
    }
    #expect(try database.oneInteger("SELECT count(*) FROM counters") == 0)
  }

  @Test func `reading a column as another type is refused`() throws {
    func failure(_ read: (borrowing Row) throws(DatabaseError) -> Void) -> DatabaseError? {
      do throws(DatabaseError) {
        _ = try database.one("SELECT 1, 'text', x'00', NULL, 1.5, -1", body: read)
        return nil
      } catch {
        return error
      }
    }
    #expect(failure { row throws(DatabaseError) in _ = try row.integer(1) } == .wrongType(column: 1))
    #expect(failure { row throws(DatabaseError) in _ = try row.text(0) } == .wrongType(column: 0))
    #expect(failure { row throws(DatabaseError) in _ = try row.bytes(1) } == .wrongType(column: 1))
    #expect(failure { row throws(DatabaseError) in _ = try row.bytes(3) } == .wrongType(column: 3))
    #expect(failure { row throws(DatabaseError) in _ = try row.integer(4) } == .wrongType(column: 4))
    #expect(failure { row throws(DatabaseError) in _ = try row.unsigned(5) } == .wrongType(column: 5))
    #expect(failure { row throws(DatabaseError) in _ = try row.integer(6) } == .misuse)
    #expect(failure { row throws(DatabaseError) in _ = try row.isNull(-1) } == .misuse)
    #expect(failure { row throws(DatabaseError) in _ = try row.integer(5) } == nil)
  }

  @Test func `text that is not UTF-8 is corrupt`() throws {
    #expect(throws: DatabaseError.corrupt) { try database.oneText("SELECT CAST(x'ff' AS TEXT)") }
  }

  @Test func `a query hands over every row in order`() throws {
    for id in 1...3 as ClosedRange<Int64> {
      #expect(try database.run("INSERT INTO blobs VALUES (?, NULL)", .integer(id)) == 1)
    }
    #expect(database.lastInsertedRowID == 3)
    var seen: [Int64] = []
    try database.query("SELECT id FROM blobs ORDER BY id DESC") { row throws(DatabaseError) in
      seen.append(try row.integer(0))
    }
    #expect(seen == [3, 2, 1])
    let above = try database.all("SELECT id FROM blobs WHERE id > ?", .integer(1)) { row throws(DatabaseError) in
      try row.unsigned(0)
    }
    #expect(above == [2, 3])
    #expect(try database.run("UPDATE blobs SET bytes = x'01' WHERE id > 1") == 2)
  }

  @Test func `a query of one row finds none or refuses two`() throws {
    #expect(try database.oneText("SELECT name FROM counters") == nil)
    #expect(try database.oneUnsigned("SELECT count FROM counters") == nil)
    try database.run("INSERT INTO counters VALUES ('a', 1), ('b', 2)")
    #expect(throws: DatabaseError.misuse) { try database.oneText("SELECT name FROM counters") }
  }

  @Test func `the same query can run inside itself`() throws {
    try database.run("INSERT INTO counters VALUES ('a', 1), ('b', 2)")
    let sql: StaticString = "SELECT count FROM counters"
    var pairs = 0
    try database.query(sql) { _ throws(DatabaseError) in
      try database.query(sql) { _ throws(DatabaseError) in pairs += 1 }
    }
    #expect(pairs == 4)
  }

  @Test func `an error in a row ends the query and leaves the statement usable`() throws {
    try database.run("INSERT INTO counters VALUES ('a', 1), ('b', 2)")
    var count = 0
    let sql: StaticString = "SELECT name FROM counters ORDER BY name"
    #expect(throws: DatabaseError.wrongType(column: 0)) {
      try database.query(sql) { row throws(DatabaseError) in
        count += 1
        _ = try row.integer(0)
      }
    }
    #expect(count == 1)
    #expect(try database.all(sql) { row throws(DatabaseError) in try row.text(0) } == ["a", "b"])
  }

  @Test func `a database is shared between threads behind a lock`() async throws {
    final class Shared: Sendable {
      let database: Mutex<Database>

      init(_ folder: TemporaryFolder) throws { database = Mutex(try openTestDatabase(in: folder)) }
    }
    let shared = try Shared(folder)
    try await withThrowingTaskGroup { group in
      for id in 0..<20 as Range<Int64> {
        group.addTask {
          try shared.database.withLock { database throws(DatabaseError) in
            try database.transaction { () throws(DatabaseError) in
              try database.run("INSERT INTO blobs VALUES (?, NULL)", .integer(id))
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try database.oneInteger("SELECT count(*) FROM blobs") == 20)
  }

  @Test func `rules of the schema are kept`() throws {
    try database.run("INSERT INTO counters VALUES ('a', 1)")
    #expect(throws: DatabaseError.constraint) { try database.run("INSERT INTO counters VALUES ('a', 2)") }
    #expect(throws: DatabaseError.constraint) { try database.run("INSERT INTO counters VALUES ('b', -1)") }
    #expect(throws: DatabaseError.constraint) { try database.run("INSERT INTO counters VALUES ('b', 'many')") }
  }

  @Test func `foreign keys are enforced`() throws {
    try database.run("CREATE TABLE child (blob INTEGER REFERENCES blobs (id))")
    #expect(throws: DatabaseError.constraint) { try database.run("INSERT INTO child VALUES (99)") }
  }

  @Test func `a wrong number of values, a second statement and an empty one are misuse`() throws {
    #expect(throws: DatabaseError.misuse) { try database.run("SELECT ?") }
    #expect(throws: DatabaseError.misuse) { try database.run("SELECT ?", .null, .null) }
    #expect(throws: DatabaseError.misuse) { try database.run("SELECT 1; SELECT 2") }
    #expect(throws: DatabaseError.misuse) { try database.run("  ") }
    try database.run("SELECT 1 ; \n")
  }

  @Test func `wrong SQL is an error`() throws {
    #expect(throws: DatabaseError.other(code: 1)) { try database.run("SELECT nothing FROM nowhere") }
    #expect(throws: DatabaseError.other(code: 1)) { try database.run("SELECT \"a name that is no column\"") }
    #expect(throws: DatabaseError.other(code: 1)) {
      try database.run("CREATE INDEX by_nothing ON blobs (\"a name that is no column\")")
    }
  }

  @Test func `an unknown error says which one, by its extended code`() {
    // SQLITE_ERROR_MISSING_COLLSEQ
    #expect(throws: DatabaseError.other(code: 257)) { try database.run("SELECT 'a' < 'b' COLLATE nowhere") }
  }

  @Test func `a connection that may only read refuses to write`() throws {
    try database.run("PRAGMA query_only = ON")
    #expect(throws: DatabaseError.readOnly) { try database.run("INSERT INTO counters VALUES ('a', 1)") }
  }

  @Test func `the settings for durability and distrust are on`() throws {
    #expect(try database.oneText("PRAGMA journal_mode") == "wal")
    #expect(try database.oneInteger("PRAGMA synchronous") == 2)
    #expect(try database.oneInteger("PRAGMA foreign_keys") == 1)
    #expect(try database.oneInteger("PRAGMA trusted_schema") == 0)
    #expect(try database.oneInteger("PRAGMA secure_delete") == 1)
    #expect(try database.oneInteger("PRAGMA cell_size_check") == 1)
    #expect(try database.oneInteger("PRAGMA temp_store") == 2)
  }

  @Test func `the schema table cannot be written`() throws {
    try database.run("PRAGMA writable_schema = ON")
    #expect(throws: DatabaseError.other(code: 1)) { try database.run("DELETE FROM sqlite_schema") }
  }

  @Test func `a closed database refuses everything and closes twice`() throws {
    try database.close()
    try database.close()
    #expect(throws: DatabaseError.misuse) { try database.run("SELECT 1") }
    #expect(throws: DatabaseError.misuse) { try database.checkpoint() }
    #expect(throws: DatabaseError.misuse) { try database.transaction { () throws(DatabaseError) in } }
    #expect(database.lastInsertedRowID == 0)
  }

  @Test func `closing gives the files up at once, whatever was prepared`() throws {
    try database.run("INSERT INTO counters VALUES ('a', 7)")
    #expect(try folder.names() == ["db", "db-shm", "db-wal"])
    try database.close()
    #expect(try folder.names() == ["db"])
  }

  @Test func `closing inside a query is misuse`() throws {
    #expect(throws: DatabaseError.misuse) {
      try database.query("SELECT 1") { _ throws(DatabaseError) in try database.close() }
    }
    try database.close()
  }

  @Test func `a checkpoint empties the log and nothing deleted is left in the files`() throws {
    let secret = [UInt8](repeating: 0xa7, count: 64)
    try database.run("INSERT INTO blobs VALUES (1, ?)", .bytes(secret))
    try database.checkpoint()
    #expect(try folder.contents("db-wal").isEmpty)
    #expect(try holds(secret))
    try database.run("DELETE FROM blobs")
    try database.checkpoint()
    #expect(try !holds(secret))
  }

  private func holds(_ bytes: [UInt8]) throws -> Bool {
    let contents = try folder.contents("db")
    return contents.indices.dropLast(bytes.count - 1).contains { contents[$0...].starts(with: bytes) }
  }
}
