import TestSupport
import Testing

import HoldfastDatabase

@Suite struct SQLDatabaseTests {
  @Test func `rows come back`() throws {
    let folder = try TemporaryFolder()
    let database = try SQLDatabase(
      .sqlite(path: folder.file("db")), applicationID: 7,
      schema: ["CREATE TABLE a (b IDENTITY, c TEXT, d BLOB) STRICT; CREATE TABLE e (f INTEGER) STRICT; APPEND ONLY e;"])
    let key = try database.transaction { session throws(SQLFault) in
      try session.run("INSERT INTO e VALUES ($1)", .integer(1))
      return try session.row("INSERT INTO a (c, d) VALUES ($2, $1) RETURNING b", .bytes([1]), .text("x"))?.integer(0)
    }
    #expect(key == 1)
    let text = try database.read { session throws(SQLFault) in
      try session.row("SELECT c, d FROM a WHERE b = $1 FOR UPDATE", .integer(1))?.text(0)
    }
    #expect(text == "x")
    #expect(throws: SQLFault.constraint) {
      try database.transaction { session throws(SQLFault) in _ = try session.run("DELETE FROM e") }
    }
    #expect(throws: SQLFault.readOnly) {
      try database.read { session throws(SQLFault) in _ = try session.run("DELETE FROM a") }
    }
    try database.check()
  }
}
