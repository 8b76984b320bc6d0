import Glibc
import HoldfastStorage
import TestPostgreSQL
import TestSupport
import Testing

import HoldfastDatabase

@Suite(.enabled(if: PostgreSQLServer.isInstalled, Comment(rawValue: PostgreSQLServer.absence)))
struct PostgreSQLConnectionTests {
  let server: PostgreSQLServer
  let name: String

  init() throws {
    server = try sharedServer.get()
    name = try server.makeDatabase()
  }

  private func open(
    _ url: String, connectionCount: Int = 4, limits: SQLLimits = .test
  ) throws(SQLFault) -> SQLDatabase {
    try SQLDatabase(
      .postgreSQL(url: url), applicationID: testApplicationID, schema: testSchema, connectionCount: connectionCount,
      limits: limits)
  }

  private func settings(_ database: SQLDatabase) throws -> [String] {
    let row = try database.read { session throws(SQLFault) in
      try session.row(
        """
        SELECT concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'),
          current_setting('idle_in_transaction_session_timeout'), current_setting('application_name'),
          current_setting('client_encoding'), current_setting('tcp_keepalives_idle'))
        """)
    }
    return try #require(try row?.text(0)).split(separator: " ").map(String.init)
  }

  @Test func `a connection has limits of time, unless the URL has others`() throws {
    let usual = try settings(open(server.url(name, options: "options=")))
    #expect(usual.prefix(5) == ["10s", "5s", "15s", "holdfast-service", "UTF8"])
    let options =
      "options=-c%20statement_timeout%3D7s%20-c%20lock_timeout%3D3s&application_name=own&client_encoding=LATIN1"
    #expect(try settings(open(server.url(name, options: options))).prefix(5) == ["7s", "3s", "15s", "own", "UTF8"])
  }

  @Test func `a password comes from the URL or a file, and a wrong one is refused`() throws {
    try server.execute("CREATE ROLE \(name) LOGIN PASSWORD 'secret'; ALTER DATABASE \(name) OWNER TO \(name)")
    let address = "@127.0.0.1:\(server.port)/\(name)?connect_timeout=60"
    try open("postgresql://\(name):secret\(address)").addCounter()
    #expect(throws: SQLFault.permission) { try open("postgresql://\(name):wrong\(address)") }
    #expect(throws: SQLFault.permission) { try open("postgresql://\(name)\(address)&passfile=/nothing") }
    let folder = try TemporaryFolder()
    let file = try folder.makeFile("pass", Array("127.0.0.1:*:*:\(name):secret\n".utf8))
    #expect(try open("postgresql://\(name)\(address)&passfile=\(file)").counter() == 0)
  }

  @Test func `the reason of a refused connection is known`() throws {
    #expect(throws: SQLFault.missing) { try open(server.url("nothing")) }
    try server.execute("CREATE ROLE \(name) LOGIN CONNECTION LIMIT 0 PASSWORD 'secret'")
    let address = "postgresql://\(name):secret@127.0.0.1:\(server.port)/\(name)?connect_timeout=60"
    #expect(throws: SQLFault.busy) { try open(address) }
    try server.execute("ALTER ROLE \(name) CONNECTION LIMIT 5; REVOKE CONNECT ON DATABASE \(name) FROM PUBLIC")
    #expect(throws: SQLFault.permission) { try open(address) }
    try server.execute("GRANT CONNECT ON DATABASE \(name) TO PUBLIC")
    // Since PostgreSQL 15, not everyone may create tables.
    #expect(throws: SQLFault.permission) { try open(address) }
    #expect(throws: SQLFault.unavailable) { try open("postgresql:///\(name)?host=\(server.folder.path)&port=1") }
  }

  @Test func `a database with tables of others is foreign, with extensions only it is empty`() throws {
    try server.execute("CREATE EXTENSION pageinspect", database: name)
    _ = try open(server.url(name))
    let other = try server.makeDatabase()
    try server.execute("CREATE TABLE theirs (a TEXT)", database: other)
    #expect(throws: SQLFault.foreign) { try open(server.url(other)) }
    try server.execute("ALTER TABLE theirs RENAME TO holdfast_schema", database: other)
    #expect(throws: SQLFault.foreign) { try open(server.url(other)) }
  }

  @Test func `a lock that is held for too long is busy, and a statement that takes too long is slow`() throws {
    let database = try open(server.url(name))
    try database.addCounter()
    try database.transaction { session throws(SQLFault) in
      try session.run("UPDATE counters SET count = 5")
      let busy = fault { () throws(SQLFault) in
        try database.transaction { session throws(SQLFault) in
          try session.run("SELECT set_config('lock_timeout', '1ms', TRUE)")
          try session.run("UPDATE counters SET count = 6")
        }
      }
      #expect(busy == .busy)
    }
    let slow = fault { () throws(SQLFault) in
      try database.transaction { session throws(SQLFault) in
        try session.run("UPDATE counters SET count = 7")
        try session.run("SELECT set_config('statement_timeout', '1ms', TRUE)")
        try session.run("SELECT pg_sleep(60)")
      }
    }
    #expect(slow == .slow)
    #expect(try database.counter() == 5)
  }

  @Test func `a transaction that is idle for too long is slow, and runs once`() throws {
    let database = try open(server.url(name))
    try database.addCounter()
    var runCount = 0
    for endsWithStatement in [true, false] {
      let slow = fault { () throws(SQLFault) in
        try database.transaction { session throws(SQLFault) in
          runCount += 1
          let process = try session.row("SELECT pg_backend_pid()")?.integer(0) ?? 0
          try session.run("SELECT set_config('idle_in_transaction_session_timeout', '50ms', TRUE)")
          do {
            try server.wait(until: "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = \(process)")
          } catch { Issue.record(error) }
          if endsWithStatement { try session.run("DELETE FROM counters") }
        }
      }
      #expect(slow == .slow)
    }
    #expect(runCount == 2)
    #expect(try database.counter() == 0)
  }

  @Test func `a database that only permits reading is read-only`() throws {
    let database = try open(server.url(name))
    try database.addCounter()
    try server.execute("ALTER DATABASE \(name) SET default_transaction_read_only = on")
    // The connection that exists keeps the old setting.
    try database.increment()
    #expect(throws: SQLFault.readOnly) { try open(server.url(name)) }
    #expect(throws: SQLFault.readOnly) {
      try database.read { session throws(SQLFault) in _ = try session.run("DELETE FROM counters") }
    }
    #expect(try database.counter() == 1)
  }

  @Test func `a constraint that is checked at the commit is no uncertain end`() throws {
    try open(server.url(name)).addCounter()
    try server.execute(
      "CREATE TABLE late (name TEXT REFERENCES counters DEFERRABLE INITIALLY DEFERRED)", database: name)
    let database = try open(server.url(name))
    let failed = fault { () throws(SQLFault) in
      try database.transaction { session throws(SQLFault) in
        try session.run("INSERT INTO late VALUES ('nothing')")
        try session.run("UPDATE counters SET count = 7")
      }
    }
    #expect(failed == .constraint)
    #expect(try database.counter() == 0)
  }

  @Test func `a collision runs the body again, at most ten times, with growing pauses at random`() throws {
    let ranges = Synchronized<[ClosedRange<Int>]>([])
    let pauses = Synchronized<[Int]>([])
    var limits = SQLLimits.test
    limits.choose = { range in
      ranges.change { $0.append(range) }
      return range.upperBound / 2
    }
    limits.pause = { pause in pauses.change { $0.append(pause) } }
    let database = try open(server.url(name), limits: limits)
    try server.execute(
      """
      CREATE FUNCTION fail(code TEXT) RETURNS BIGINT LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION USING ERRCODE = code; END'
      """, database: name)
    try database.addCounter()
    for (code, failureCount, expected) in [
      ("40001", 9, nil), ("40P01", 10, SQLFault.conflict), ("40001", 20, .conflict),
    ] {
      var runCount = 0
      pauses.change { $0 = [] }
      let thrown = fault { () throws(SQLFault) in
        try database.transaction { session throws(SQLFault) in
          runCount += 1
          try session.run("UPDATE counters SET count = count + 1")
          if runCount <= failureCount { try session.run("SELECT fail($1)", .text(code)) }
        }
      }
      #expect(thrown == expected)
      #expect(runCount == 10)
      #expect(pauses.value == [10, 20, 40, 80, 160, 320, 320, 320, 320])
    }
    #expect(ranges.value.prefix(4) == [0...20, 0...40, 0...80, 0...160])
    #expect(try database.counter() == 1)
  }

  @Test func `transactions that lock each other out all succeed`() throws {
    let options = "options=-c%20deadlock_timeout%3D1ms%20-c%20lock_timeout%3D60s%20-c%20statement_timeout%3D60s"
    let database = try open(server.url(name, options: options))
    try database.addCounter("a")
    try database.addCounter("b")
    let faults = try onThreads(2) { number throws(SQLFault) in
      for _ in 0..<20 {
        try database.transaction { session throws(SQLFault) in
          for name in number == 0 ? ["a", "b"] : ["b", "a"] {
            try session.run("UPDATE counters SET count = count + 1 WHERE name = $1", .text(name))
          }
        }
      }
    }
    #expect(faults == [])
    #expect(try database.counter("a") == 40)
    #expect(try database.counter("b") == 40)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can make a small disk"))
  func `a full disk is full, and the database works again with room`() throws {
    let server = try PostgreSQLServer()
    try server.start()
    let name = try server.makeDatabase()
    let folder = try TemporaryFolder(in: "/tmp")
    try PostgreSQLServer.command("mount", "-t", "tmpfs", "-o", "size=4m,mode=777", "tmpfs", folder.path)
    defer {
      server.stop(.immediate)
      _ = try? PostgreSQLServer.command("umount", folder.path)
    }
    try PostgreSQLServer.command("chmod", "711", folder.path)
    try PostgreSQLServer.command("chown", "postgres", folder.path)
    try server.execute("CREATE TABLESPACE small_\(name) LOCATION '\(folder.path)'")
    try server.execute("ALTER DATABASE \(name) SET default_tablespace = small_\(name)")
    let database = try open(server.url(name))
    try database.addCounter()
    let full = fault { () throws(SQLFault) in
      try database.transaction { session throws(SQLFault) in
        // The server compresses bytes that repeat.
        var random = TestRandom()
        for _ in 0..<8 {
          var bytes = [UInt8](repeating: 0, count: 1_000_000)
          var span = bytes.mutableSpan
          try? random.fill(&span)
          try session.run("INSERT INTO entries (body) VALUES ($1)", .bytes(bytes))
        }
      }
    }
    #expect(full == .full)
    try database.increment()
    #expect(try database.counter() == 1)
  }
}
