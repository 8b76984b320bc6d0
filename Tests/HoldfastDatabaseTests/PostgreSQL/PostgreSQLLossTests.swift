import HoldfastLinux
import HoldfastStorage
import TestPostgreSQL
import Testing

import HoldfastDatabase

/// Servers that stop, are killed, or keep silent.
@Suite(.enabled(if: PostgreSQLServer.isInstalled, Comment(rawValue: PostgreSQLServer.absence)))
struct PostgreSQLLossTests {
  let server: PostgreSQLServer

  init() throws {
    server = try PostgreSQLServer()
    try server.start()
  }

  private func open(_ options: String = "", limits: SQLLimits = .test) throws(SQLFault) -> SQLDatabase {
    try SQLDatabase(
      .postgreSQL(url: server.url("postgres", options: options)), applicationID: testApplicationID, schema: testSchema,
      connectionCount: 4, limits: limits)
  }

  @Test func `a database continues when its server has been restarted`() throws {
    let database = try open()
    try database.addCounter()
    server.stop()
    #expect(throws: SQLFault.unavailable) { try database.increment() }
    #expect(throws: SQLFault.unavailable) { try database.check() }
    try server.start()
    try database.check()
    let faults = try onThreads(8) { _ throws(SQLFault) in try database.increment() }
    #expect(faults == [])
    // Eight threads had up to four connections, all of which are closed now.
    server.stop(.immediate)
    try server.start()
    try database.increment()
    #expect(try database.counter() == 9)
  }

  @Test func `a body runs once more if the server is killed and comes back, and counts once`() throws {
    let database = try open()
    try database.addCounter()
    var runCount = 0
    try database.transaction { session throws(SQLFault) in
      runCount += 1
      try session.run("UPDATE counters SET count = count + 1")
      guard runCount == 1 else { return }
      server.kill()
      do { try server.start() } catch { Issue.record(error) }
      try session.run("UPDATE counters SET count = count + 1")
    }
    #expect(runCount == 2)
    #expect(try database.counter() == 1)
  }

  @Test func `a server that is killed and stays away is unavailable, and nothing is written`() throws {
    let database = try open()
    try database.addCounter()
    #expect(throws: SQLFault.unavailable) {
      try database.transaction { session throws(SQLFault) in
        try session.run("UPDATE counters SET count = count + 1")
        server.kill()
        try session.run("UPDATE counters SET count = count + 1")
      }
    }
    try server.start()
    #expect(try database.counter() == 0)
  }

  @Test func `a connection that is lost before the commit is sent is no uncertain end`() throws {
    let database = try open()
    try database.addCounter()
    var runCount = 0
    try database.transaction { session throws(SQLFault) in
      runCount += 1
      try session.run("UPDATE counters SET count = count + 1")
      if runCount == 1 { try end(session) }
    }
    #expect(runCount == 2)
    #expect(try database.counter() == 1)
    #expect(throws: SQLFault.unavailable) {
      try database.transaction { session throws(SQLFault) in
        runCount += 1
        try end(session)
      }
    }
    #expect(runCount == 4)
  }

  @Test func `a connection that was lost while nobody used it does not count as a loss`() throws {
    let database = try open()
    try database.addCounter()
    server.stop(.immediate)
    try server.start()
    var runCount = 0
    try database.transaction { session throws(SQLFault) in
      runCount += 1
      try session.run("UPDATE counters SET count = count + 1")
      if runCount == 1 { try end(session) }
    }
    #expect(runCount == 2)
    #expect(try database.counter() == 1)
  }

  /// Makes the server end the connection of a transaction, and waits until it has.
  private func end(_ session: any SQLSession) throws(SQLFault) {
    let process = try session.row("SELECT pg_backend_pid()")?.integer(0) ?? 0
    do {
      try server.execute("SELECT pg_terminate_backend(\(process), 60000)")
    } catch { Issue.record(error) }
  }

  @Test func `a server that no longer answers is regarded as lost`() throws {
    let database = try open()
    try database.addCounter()
    // All of these times pass: for an answer that does not come, and for a new connection that nobody answers.
    var limits = SQLLimits.test
    limits.answerMilliseconds = 3000
    let impatient = try open("options=-c%20statement_timeout%3D2s&connect_timeout=4", limits: limits)
    #expect(throws: SQLFault.unavailable) {
      try impatient.transaction { session throws(SQLFault) in
        try session.run("UPDATE counters SET count = count + 1")
        server.suspend()
        try session.run("UPDATE counters SET count = count + 1")
      }
    }
    server.resume()
    #expect(try database.counter() == 0)
  }
}
