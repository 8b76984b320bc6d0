import Testing

import HoldfastDatabase

@Suite struct DialectTests {
  @Test(arguments: [
    ("SELECT a FROM b WHERE c = $1 AND d = $12", "SELECT a FROM b WHERE c = ?1 AND d = ?12"),
    ("SELECT a FROM b FOR UPDATE", "SELECT a FROM b "),
    ("SELECT a FROM b FOR UPDATE SKIP LOCKED", "SELECT a FROM b "),
    ("SELECT a FROM b FOR SHARE NOWAIT", "SELECT a FROM b "),
    ("SELECT a FROM b FOR NO KEY UPDATE OF b SKIP LOCKED", "SELECT a FROM b "),
    ("SELECT a FROM b FOR KEY SHARE;", "SELECT a FROM b ;"),
    ("SELECT 'FOR UPDATE $1', \"FOR UPDATE\" -- FOR UPDATE", "SELECT 'FOR UPDATE $1', \"FOR UPDATE\" -- FOR UPDATE"),
    (
      "CREATE TABLE a (b IDENTITY, c TEXT) STRICT, WITHOUT ROWID;",
      "CREATE TABLE a (b INTEGER PRIMARY KEY AUTOINCREMENT, c TEXT) STRICT, WITHOUT ROWID;"
    ),
  ])
  func `SQL is rewritten for SQLite`(sql: String, expected: String) {
    #expect(Dialect.sqlite(sql) == expected)
  }

  @Test(arguments: [
    (
      "SELECT CAST(sum(a) AS INTEGER) FROM b WHERE c = $1 FOR UPDATE",
      "SELECT CAST(sum(a) AS BIGINT) FROM b WHERE c = $1 FOR UPDATE"
    ),
    ("SELECT 'INTEGER', \"BLOB\", 'it''s BLOB'", "SELECT 'INTEGER', \"BLOB\", 'it''s BLOB'"),
    ("SELECT x'00ff', x, x 'a'", "SELECT '\\x00ff'::BYTEA, x, x 'a'"),
    ("SELECT text, integer, blob", "SELECT text, integer, blob"),
  ])
  func `a statement is rewritten for PostgreSQL`(sql: String, expected: String) {
    #expect(Dialect.postgreSQL(sql) == expected)
  }

  @Test(arguments: [
    (
      "CREATE TABLE a (b IDENTITY, c TEXT NOT NULL, d BLOB) STRICT, WITHOUT ROWID;",
      "CREATE TABLE a (b BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, c TEXT COLLATE \"C\" NOT NULL, d BYTEA)  ;"
    ),
    ("CREATE TABLE a (b INTEGER) WITHOUT ROWID, STRICT;", "CREATE TABLE a (b BIGINT)  ;"),
    ("CREATE TABLE a (b INTEGER) STRICT;", "CREATE TABLE a (b BIGINT) ;"),
  ])
  func `a schema is rewritten for PostgreSQL`(sql: String, expected: String) {
    #expect(Dialect.postgreSQLSchema(sql) == expected)
  }

  @Test func `only queries and changes are statements`() {
    #expect(Dialect.kind(of: " -- a comment\n SELECT 1") == .query)
    #expect(Dialect.kind(of: "WITH a AS (SELECT 1) SELECT * FROM a") == .query)
    #expect(Dialect.kind(of: "WITH a AS (SELECT 1) DELETE FROM b") == .change)
    for sql in ["SET synchronous_commit = off", "COMMIT", "ROLLBACK", "PRAGMA synchronous", "", "select 1"] {
      #expect(Dialect.kind(of: sql) == nil)
    }
  }
}
