import HoldfastStorage
import TestPostgreSQL
import Testing

import HoldfastDatabase

@Suite struct SQLDatabaseTests {
  @Test(.enabled(if: PostgreSQLServer.isInstalled, Comment(rawValue: PostgreSQLServer.absence)))
  func `the tests of this suite also run with PostgreSQL`() {
    #expect(Engine.available == Engine.allCases)
  }

  @Test(arguments: Engine.available)
  func `every type of value comes back as it was written`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    let large = (0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let written: [(Value, Value)] = [
      (.bytes([0, 1, 255]), .text("Grüße an alle \u{10ffff}")), (.bytes([]), .text("")), (.null, .null),
      (.bytes(large), .text(String(repeating: "ä", count: 100_000))),
    ]
    try database.transaction { session throws(SQLFault) in
      for (body, note) in written { try session.run("INSERT INTO entries (body, note) VALUES ($1, $2)", body, note) }
      for number in [Int64.min, -1, 0, .max] {
        try session.run("INSERT INTO log VALUES ($1, 'x')", .integer(number))
      }
      try session.run("INSERT INTO log VALUES ($1, 'y')", .unsigned(7))
    }
    let rows = try database.read { session throws(SQLFault) in
      try session.rows("SELECT id, body, note FROM entries ORDER BY id")
    }
    #expect(try rows.map { try $0.unsigned(0) } == [1, 2, 3, 4])
    #expect(try rows[0].bytes(1) == [0, 1, 255])
    #expect(try rows[0].text(2) == "Grüße an alle \u{10ffff}")
    #expect(try rows[1].optionalBytes(1) == [])
    #expect(try rows[1].optionalText(2) == "")
    #expect(try rows[2].isNull(1) && rows[2].optionalBytes(1) == nil && rows[2].optionalText(2) == nil)
    #expect(try rows[3].bytes(1) == large)
    let numbers = try database.read { session throws(SQLFault) in
      try session.rows("SELECT number FROM log ORDER BY number")
    }
    #expect(try numbers.map { try $0.integer(0) } == [.min, -1, 0, 7, .max])
  }

  @Test(arguments: Engine.available)
  func `a column that is read as another type is misuse`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    let row = try #require(
      try database.read { session throws(SQLFault) in try session.row("SELECT 1, 'a', x'00', NULL, -1, 1 = 1") })
    #expect(throws: SQLFault.misuse) { try row.text(0) }
    #expect(throws: SQLFault.misuse) { try row.integer(1) }
    #expect(throws: SQLFault.misuse) { try row.text(2) }
    #expect(throws: SQLFault.misuse) { try row.bytes(3) }
    #expect(throws: SQLFault.misuse) { try row.unsigned(4) }
    #expect(throws: SQLFault.misuse) { try row.isNull(6) }
    #expect(throws: SQLFault.misuse) { try row.optionalUnsigned(-1) }
    #expect(try row.optionalUnsigned(3) == nil)
    #expect(try row.optionalUnsigned(0) == 1)
    #expect(try row.integer(5) == 1)
  }

  @Test(arguments: Engine.available)
  func `a sum is an integer`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    for numbers: [Int64] in [[], [0], [1, -20_000], [10_000], [.max], [.min], [123_456_789_012, 1], [100_000_000]] {
      let sum = try database.transaction { session throws(SQLFault) in
        try session.run("DELETE FROM entries")
        for number in numbers {
          try session.run("INSERT INTO log VALUES ($1, '') ON CONFLICT DO NOTHING", .integer(number))
        }
        return try session.row(
          "SELECT sum(number) FROM log WHERE number = $1 OR number = $2", .integer(numbers.first ?? 3),
          .integer(numbers.last ?? 3))
      }
      #expect(try sum?.optionalInteger(0) == (numbers.isEmpty ? nil : numbers.reduce(0, +)))
    }
  }

  @Test(arguments: Engine.available)
  func `a statement that the session does not run is misuse, and nothing is written`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    let statements: [(StaticString, [Value])] = [
      ("COMMIT", []), ("SET synchronous_commit = off", []), ("PRAGMA synchronous = OFF", []),
      ("SELECT $1, $2", [.integer(1)]), ("INSERT INTO counters VALUES ($1, 0)", [.text("a\0b")]),
      ("INSERT INTO counters VALUES ('b', $1)", [.unsigned(.max)]),
    ]
    for (sql, values) in statements {
      let fault = fault { () throws(SQLFault) in
        try database.transaction { session throws(SQLFault) in
          try session.run("INSERT INTO counters VALUES ('a', 0)")
          _ = try session.execute(sql, values: values)
        }
      }
      #expect(fault == .misuse, "\(sql)")
    }
    #expect(throws: SQLFault.misuse) {
      try database.transaction { session throws(SQLFault) in
        try session.run("INSERT INTO counters VALUES ('a', 0)")
        _ = try session.row("SELECT name FROM counters UNION ALL SELECT 'b'")
      }
    }
    #expect(try database.counterCount() == 0)
  }

  @Test(arguments: Engine.available)
  func `a unique, check or foreign key that is violated is a constraint`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    try database.addCounter()
    let statements: [StaticString] = [
      "INSERT INTO counters VALUES ('a', 0)", "INSERT INTO counters VALUES ('b', -1)",
      "INSERT INTO counters VALUES ('b', NULL)", "INSERT INTO entries (counter) VALUES ('b')",
    ]
    for sql in statements {
      let fault = fault { () throws(SQLFault) in
        try database.transaction { session throws(SQLFault) in _ = try session.run(sql) }
      }
      #expect(fault == .constraint, "\(sql)")
    }
  }

  @Test(arguments: Engine.available)
  func `changed rows are counted, and ON CONFLICT and RETURNING work`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    try database.transaction { session throws(SQLFault) in
      #expect(try session.run("INSERT INTO counters VALUES ('a', 0), ('b', 5)") == 2)
      #expect(try session.run("UPDATE counters SET count = count + $1", .integer(1)) == 2)
      #expect(try session.run("SELECT name FROM counters FOR UPDATE") == 0)
      #expect(try session.run("INSERT INTO counters VALUES ('a', 9) ON CONFLICT DO NOTHING") == 0)
      let row = try session.row(
        """
        INSERT INTO counters VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET count = counters.count + excluded.count
        RETURNING count, name
        """, .text("b"))
      #expect(try row?.integer(0) == 7)
      #expect(try row?.text(1) == "b")
      let deleted = try session.rows("DELETE FROM counters WHERE count > $1 RETURNING name", .integer(0))
      #expect(deleted.count == 2)
      #expect(try session.row("SELECT 1 FROM counters") == nil)
    }
  }

  @Test(arguments: Engine.available)
  func `a value may be of another type in the next call`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    try database.transaction { session throws(SQLFault) in
      for value in [Value.null, .bytes([1]), .null, .bytes([2])] {
        try session.run("INSERT INTO entries (body) VALUES ($1)", value)
      }
    }
    let rows = try database.read { session throws(SQLFault) in try session.rows("SELECT body FROM entries ORDER BY id")
    }
    #expect(try rows.map { try $0.optionalBytes(0) } == [nil, [1], nil, [2]])
  }

  @Test(arguments: Engine.available)
  func `texts are ordered by their bytes`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    for name in ["b", "ä", "B", "a", "_"] { try database.addCounter(name) }
    let names = try database.read { session throws(SQLFault) in
      try session.rows("SELECT name FROM counters ORDER BY name")
    }
    #expect(try names.map { try $0.text(0) } == ["B", "_", "a", "b", "ä"])
  }

  @Test(arguments: Engine.available)
  func `an append-only table refuses changes and keeps its rows`(engine: Engine) throws {
    let database = try TestPlace(engine).open()
    try database.transaction { session throws(SQLFault) in _ = try session.run("INSERT INTO log VALUES (1, 'one')") }
    #expect(throws: SQLFault.constraint) {
      try database.transaction { session throws(SQLFault) in _ = try session.run("UPDATE log SET line = 'two'") }
    }
    #expect(throws: SQLFault.constraint) {
      try database.transaction { session throws(SQLFault) in _ = try session.run("DELETE FROM log") }
    }
    let line = try database.read { session throws(SQLFault) in try session.row("SELECT line FROM log")?.text(0) }
    #expect(line == "one")
  }
}
