import HoldfastLinux
import HoldfastStorage
import TestPostgreSQL
import Testing

import HoldfastDatabase

/// A commit counts only once the standby has it, and nothing is written that could not be.
@Suite(.enabled(if: PostgreSQLServer.isInstalled, Comment(rawValue: PostgreSQLServer.absence)))
struct PostgreSQLReplicationTests {
  let servers: ServerPair
  var primary: PostgreSQLServer { servers.primary }
  var standby: PostgreSQLServer { servers.standby }

  init() throws { servers = try ServerPair() }

  private static var waiting: String { ServerPair.waiting }

  @Test func `a commit waits for the standby, and counts when the standby is back`() throws {
    let database = try servers.open()
    try database.addCounter()
    standby.stop()
    let fault = try servers.faultOfCommit(
      of: database,
      whenWaiting: {
        #expect(try database.counter() == 0)
        try standby.start()
      })
    #expect(fault == nil)
    #expect(try database.counter() == 1)
  }

  @Test(arguments: ["pg_cancel_backend", "pg_terminate_backend"])
  func `a commit whose wait for the standby is cut short is uncertain`(function: String) throws {
    let database = try servers.open()
    try database.addCounter()
    standby.stop()
    let fault = try servers.faultOfCommit(
      of: database, whenWaiting: { try primary.execute("SELECT \(function)(pid) \(Self.waiting)") })
    #expect(fault == .uncertain)
    // The server has committed nevertheless: it would have been lost with the server.
    #expect(try database.counter() == 1)
  }

  @Test func `a commit whose server is killed is uncertain`() throws {
    let database = try servers.open()
    try database.addCounter()
    standby.stop()
    #expect(try servers.faultOfCommit(of: database, whenWaiting: { primary.kill() }) == .uncertain)
    try primary.start()
    #expect(try database.counter() == 1)
  }

  @Test func `a commit that waits for too long is uncertain, and nobody sees it`() throws {
    try servers.open().addCounter()
    var limits = SQLLimits.test
    limits.commitMilliseconds = 4000
    let database = try servers.open(limits: limits)
    standby.stop()
    #expect(throws: SQLFault.uncertain) {
      try database.transaction { session throws(SQLFault) in
        try session.run("UPDATE counters SET count = count + 1")
        // The server's own limit for statements does not end the wait, which is why there is another.
        try session.run("SELECT set_config('statement_timeout', '2s', TRUE)")
      }
    }
    #expect(try database.counter() == 0)
    try standby.start()
    try primary.wait(until: "SELECT count(*) = 0 \(Self.waiting)")
    #expect(try database.counter() == 1)
  }

  @Test func `statements of a transaction cannot make its commit return earlier`() throws {
    let database = try servers.open()
    try database.addCounter()
    standby.stop()
    for isLocal in [1, 0] as [Int64] {
      let fault = try servers.faultOfCommit(of: database, whenWaiting: servers.cancelWaiting) {
        database throws(SQLFault) in
        try database.transaction { session throws(SQLFault) in
          for (name, value) in [("synchronous_commit", "off"), ("client_min_messages", "error")] {
            try session.run("SELECT set_config($1, $2, $3 = 1)", .text(name), .text(value), .integer(isLocal))
          }
          try session.run("UPDATE counters SET count = count + 1")
        }
      }
      #expect(fault == .uncertain)
    }
  }

  @Test func `several hosts without synchronous replication are refused`() throws {
    let database = try servers.open()
    try database.addCounter()
    try primary.execute("ALTER ROLE postgres SET synchronous_commit = local")
    #expect(throws: SQLFault.notSynchronous) { try servers.open() }
    try primary.execute("ALTER ROLE postgres RESET synchronous_commit")
    try primary.configure(["synchronous_standby_names = ''"])
    try primary.reload()
    // The server's processes read their configuration in their own time.
    try primary.wait(until: "SELECT current_setting('synchronous_standby_names') = ''")
    #expect(throws: SQLFault.notSynchronous) { try servers.open() }
    // One host, which need not replicate.
    try servers.open(primary.url("postgres")).increment()
  }

  @Test func `replication that is switched off is noticed by the next transaction`() throws {
    let database = try servers.open()
    try database.addCounter()
    try primary.configure(["synchronous_standby_names = ''"])
    try primary.reload()
    try primary.wait(until: "SELECT current_setting('synchronous_standby_names') = ''")
    #expect(throws: SQLFault.notSynchronous) { try database.increment() }
    #expect(throws: SQLFault.notSynchronous) { try database.check() }
    // Also by one that waits for no answer before its commit.
    let single = try servers.open(primary.url("postgres"))
    #expect(throws: SQLFault.notSynchronous) {
      try database.transaction { session throws(SQLFault) in
        try session.send("UPDATE counters SET count = 7", values: [])
      }
    }
    #expect(try single.counter() == 0)
  }

  @Test func `a commit without a change waits for the standby, too: its answer may rest on another commit`() throws {
    try servers.open().addCounter()
    standby.stop()
    // Reading needs no standby, and nor does a service that starts.
    let database = try servers.open(limits: .impatient)
    #expect(try database.counter() == 0)
    #expect(throws: SQLFault.uncertain) {
      try database.transaction { session throws(SQLFault) in
        try session.run("UPDATE counters SET count = 7 WHERE count = 5")
      }
    }
    #expect(try database.counter() == 0)
  }

  @Test func `while commits that were given up wait, nothing more is written, and reading goes on`() throws {
    try servers.open().addCounter()
    // When a commit is given up, the server must have begun it in the first half of this time, also on busy processors.
    var limits = SQLLimits.test
    limits.commitMilliseconds = 8000
    let database = try servers.open(limits: limits)
    standby.stop()
    let refused = Synchronized<[String]>([])
    let faults = try onThreads(12) { number throws(SQLFault) in
      do throws(SQLFault) { try database.addCounter("\(number)") } catch {
        if error == .noStandby { refused.change { $0.append("\(number)") } }
        throw error
      }
    }
    let uncertainCount = faults.count { $0 == .uncertain }
    #expect(faults.count == 12 && refused.value.count == 12 - uncertainCount)
    // Each of them had one of the four connections.
    #expect(1...4 ~= uncertainCount)
    let other = try servers.open(limits: limits)
    #expect(throws: SQLFault.noStandby) { try other.increment() }
    // Also where its first statement would wait for a row that such a commit has locked.
    let locked = try #require((0..<12).map(String.init).first { name in !refused.value.contains(name) })
    #expect(throws: SQLFault.noStandby) { try database.addCounter(locked) }
    #expect(throws: SQLFault.noStandby) { try database.transaction { _ throws(SQLFault) in } }
    #expect(try primary.execute("SELECT count(*) \(Self.waiting)") == ["\(uncertainCount)"])
    try database.check()
    #expect(try database.counterCount() == 1)

    try standby.start()
    try primary.wait(until: "SELECT count(*) = 0 \(Self.waiting)")
    let patient = try servers.open()
    try patient.increment()
    #expect(try patient.counterCount() == Int64(1 + uncertainCount))
    #expect(try other.counter() == 1)
  }

  @Test func `a commit that has not waited for long keeps nobody from writing`() throws {
    let database = try servers.open()
    try database.addCounter()
    try database.addCounter("b")
    standby.stop()
    let fault = try servers.faultOfCommit(
      of: database,
      whenWaiting: {
        // A process that starts looks for commits that wait.
        let other = try servers.open()
        let thread = try Thread { try? other.increment("b") }
        try primary.wait(until: "SELECT count(*) = 2 \(Self.waiting)")
        try standby.start()
        thread.join()
      })
    #expect(fault == nil)
    #expect(try database.counter() == 1)
    #expect(try database.counter("b") == 1)
  }

  @Test func `tables are not created while commits wait, and whether there are any is seen without a lock`() throws {
    standby.stop()
    #expect(throws: SQLFault.uncertain) { try servers.open(limits: .impatient) }
    // It keeps others from writing when it has waited for half of its time.
    let isOld = "state_change < clock_timestamp() - interval '\(SQLLimits.impatient.commitMilliseconds / 2) ms'"
    try primary.wait(until: "SELECT count(*) = 1 \(Self.waiting) AND \(isOld)")
    #expect(throws: SQLFault.noStandby) { try servers.open(limits: .impatient) }
    #expect(throws: SQLFault.missing) {
      try SQLDatabase(
        .postgreSQL(url: servers.url()), applicationID: testApplicationID, schema: testSchema, creating: false,
        limits: .test)
    }
    try standby.start()
    try primary.wait(until: "SELECT count(*) = 0 \(Self.waiting)")
    try servers.open().addCounter()
  }
}
