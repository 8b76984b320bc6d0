import TestSupport
import Testing

import HoldfastStorage

@Suite struct DatabaseTransactionTests {
  enum Refusal: Error, Equatable {
    case notAllowed
    case storage(DatabaseError)
  }

  let folder: TemporaryFolder
  let database: Database

  init() throws {
    folder = try TemporaryFolder()
    database = try openTestDatabase(in: folder)
  }

  private func rowCount() throws -> Int64? { try database.oneInteger("SELECT count(*) FROM blobs") }

  @Test func `a committed transaction is there for another connection`() throws {
    let result = try database.transaction { () throws(DatabaseError) in
      try database.run("INSERT INTO blobs VALUES (1, NULL)")
      return "done"
    }
    #expect(result == "done")
    let other = try openTestDatabase(in: folder)
    #expect(try other.oneInteger("SELECT count(*) FROM blobs") == 1)
  }

  @Test func `an error rolls everything back`() throws {
    #expect(throws: DatabaseError.constraint) {
      try database.transaction { () throws(DatabaseError) in
        try database.run("INSERT INTO blobs VALUES (1, NULL)")
        try database.run("INSERT INTO blobs VALUES (1, NULL)")
      }
    }
    #expect(try rowCount() == 0)
    try database.transaction { () throws(DatabaseError) in _ = try database.run("INSERT INTO blobs VALUES (2, NULL)") }
    #expect(try rowCount() == 1)
  }

  @Test func `an error of the caller's own rolls back and passes through`() throws {
    #expect(throws: Refusal.notAllowed) {
      try database.transaction(mapping: Refusal.storage) { () throws(Refusal) in
        do throws(DatabaseError) {
          try database.run("INSERT INTO blobs VALUES (1, NULL)")
        } catch {
          throw .storage(error)
        }
        throw .notAllowed
      }
    }
    #expect(try rowCount() == 0)
  }

  @Test func `a transaction inside another is misuse and rolls back the outer one`() throws {
    #expect(throws: DatabaseError.misuse) {
      try database.transaction { () throws(DatabaseError) in
        try database.run("INSERT INTO blobs VALUES (1, NULL)")
        try database.transaction { () throws(DatabaseError) in }
      }
    }
    #expect(try rowCount() == 0)
  }

  @Test func `closing and checkpoints inside a transaction are misuse`() throws {
    #expect(throws: DatabaseError.misuse) {
      try database.transaction { () throws(DatabaseError) in try database.close() }
    }
    #expect(throws: DatabaseError.misuse) {
      try database.transaction { () throws(DatabaseError) in try database.checkpoint() }
    }
  }

  @Test func `a snapshot sees one state, and what it writes is rolled back`() throws {
    let other = try openTestDatabase(in: folder)
    try database.snapshot(mapping: Refusal.storage) { () throws(Refusal) in
      do throws(DatabaseError) {
        #expect(try database.oneInteger("SELECT count(*) FROM blobs") == 0)
        try other.run("INSERT INTO blobs VALUES (1, NULL)")
        #expect(try database.oneInteger("SELECT count(*) FROM blobs") == 0)
      } catch { throw .storage(error) }
    }
    #expect(try rowCount() == 1)
    try database.snapshot(mapping: Refusal.storage) { () throws(Refusal) in
      do throws(DatabaseError) { try database.run("DELETE FROM blobs") } catch { throw .storage(error) }
    }
    #expect(try rowCount() == 1)
    #expect(throws: Refusal.storage(.misuse)) {
      try database.snapshot(mapping: Refusal.storage) { () throws(Refusal) in
        try database.snapshot(mapping: Refusal.storage) { () throws(Refusal) in }
      }
    }
  }

  @Test func `a second writer is told that the database is busy`() throws {
    let other = try openTestDatabase(in: folder)
    try database.transaction { () throws(DatabaseError) in
      #expect(throws: DatabaseError.busy) { try other.transaction { () throws(DatabaseError) in } }
      #expect(throws: DatabaseError.busy) { try other.run("INSERT INTO blobs VALUES (1, NULL)") }
      #expect(throws: Refusal.storage(.busy)) {
        try other.transaction(mapping: Refusal.storage) { () throws(Refusal) in }
      }
    }
    try other.run("INSERT INTO blobs VALUES (1, NULL)")
    #expect(try rowCount() == 1)
  }

  @Test func `a reader keeps a checkpoint busy and sees the state it began with`() throws {
    let other = try openTestDatabase(in: folder)
    try database.run("INSERT INTO blobs VALUES (1, NULL)")
    try other.query("SELECT id FROM blobs") { _ throws(DatabaseError) in
      #expect(throws: Never.self) { try database.run("INSERT INTO blobs VALUES (2, NULL)") }
      #expect(throws: DatabaseError.busy) { try database.checkpoint() }
    }
    try database.checkpoint()
  }

  @Test func `a full database refuses, keeps what was there, and works again with room`() throws {
    let pageCount = try database.oneInteger("PRAGMA page_count")
    #expect(pageCount == 5)
    try database.run("INSERT INTO blobs VALUES (1, x'01')")
    try database.run("PRAGMA max_page_count = 6")
    #expect(throws: DatabaseError.full) {
      try database.transaction { () throws(DatabaseError) in
        try database.run("INSERT INTO counters VALUES ('a', 1)")
        try database.run("INSERT INTO blobs VALUES (2, zeroblob(100000))")
      }
    }
    #expect(try rowCount() == 1)
    #expect(try database.oneInteger("SELECT count(*) FROM counters") == 0)
    try database.run("PRAGMA max_page_count = 1000")
    try database.run("INSERT INTO blobs VALUES (2, zeroblob(100000))")
    #expect(try rowCount() == 2)
  }

  @Test func `a transaction that cannot be committed is rolled back, and the next one begins`() throws {
    try database.run(
      "CREATE TABLE uses (blob INTEGER NOT NULL REFERENCES blobs (id) DEFERRABLE INITIALLY DEFERRED) STRICT")
    #expect(throws: DatabaseError.constraint) {
      try database.transaction { () throws(DatabaseError) in _ = try database.run("INSERT INTO uses VALUES (1)") }
    }
    try database.transaction { () throws(DatabaseError) in
      #expect(try database.oneInteger("SELECT count(*) FROM uses") == 0)
    }
  }

  @Test func `nothing is written after SQLite has rolled back by itself`() throws {
    #expect(throws: DatabaseError.self) {
      try database.transaction { () throws(DatabaseError) in
        try database.run("INSERT INTO blobs VALUES (1, NULL)")
        _ = try? database.run("INSERT OR ROLLBACK INTO blobs VALUES (1, NULL)")
        #expect(throws: DatabaseError.misuse) { try database.run("INSERT INTO blobs VALUES (3, NULL)") }
      }
    }
    #expect(try rowCount() == 0)
  }
}
