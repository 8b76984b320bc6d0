import HoldfastLinux
import HoldfastStorage
import TestPostgreSQL
import Testing

import HoldfastDatabase

/// A primary with a synchronous standby: nothing that was committed is lost, and a former primary commits nothing.
@Suite(.enabled(if: PostgreSQLServer.isInstalled, Comment(rawValue: PostgreSQLServer.absence)))
struct PostgreSQLReplicationTests {
  let primary: PostgreSQLServer
  let standby: PostgreSQLServer

  init() throws {
    primary = try PostgreSQLServer()
    try primary.start()
    standby = try PostgreSQLServer(standbyOf: primary, name: "standby")
    try standby.start()
    try primary.configure(["synchronous_standby_names = '*'"])
    try primary.reload()
    try primary.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
  }

  private var url: String { primary.url("postgres", with: standby) }

  private func open(_ url: String, limits: SQLLimits = .test) throws(SQLFault) -> SQLDatabase {
    try SQLDatabase(
      .postgreSQL(url: url), applicationID: testApplicationID, schema: testSchema, connectionCount: 4, limits: limits)
  }

  /// Limits with which a commit that waits for a standby is given up.
  private var impatient: SQLLimits {
    var limits = SQLLimits.test
    limits.commitMilliseconds = 2000
    return limits
  }

  private static let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

  /// Adds one to the counter while the standby is away, does something to the commit that waits, and returns its fault.
  private func faultOfCommit(
    of database: SQLDatabase, whenWaiting act: () throws -> Void,
    _ change: @escaping @Sendable (SQLDatabase) throws(SQLFault) -> Void = { database throws(SQLFault) in
      try database.increment()
    }
  ) throws -> SQLFault? {
    let result = Synchronized<SQLFault?>(nil)
    let thread = try Thread {
      do throws(SQLFault) { try change(database) } catch { result.change { $0 = error } }
    }
    try primary.wait(until: "SELECT count(*) = 1 \(Self.waiting)")
    try act()
    thread.join()
    return result.value
  }

  @Test func `a commit waits for the standby, and counts when the standby is back`() throws {
    let database = try open(url)
    try database.addCounter()
    standby.stop()
    let fault = try faultOfCommit(
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
    let database = try open(url)
    try database.addCounter()
    standby.stop()
    let fault = try faultOfCommit(
      of: database, whenWaiting: { try primary.execute("SELECT \(function)(pid) \(Self.waiting)") })
    #expect(fault == .uncertain)
    // The server has committed nevertheless: it would have been lost with the server.
    #expect(try database.counter() == 1)
  }

  @Test func `a commit whose server is killed is uncertain`() throws {
    let database = try open(url)
    try database.addCounter()
    standby.stop()
    #expect(try faultOfCommit(of: database, whenWaiting: { primary.kill() }) == .uncertain)
    try primary.start()
    #expect(try database.counter() == 1)
  }

  @Test func `a commit that waits for too long is uncertain, and nobody sees it`() throws {
    // The server's own limit for statements does not end the wait, which is why there is another.
    let database = try open(url + "&options=-c%20statement_timeout%3D1s", limits: impatient)
    try database.addCounter()
    standby.stop()
    #expect(throws: SQLFault.uncertain) { try database.increment() }
    #expect(try database.counter() == 0)
    try standby.start()
    try primary.wait(until: "SELECT count(*) = 0 \(Self.waiting)")
    #expect(try database.counter() == 1)
  }

  @Test func `statements of a transaction cannot make its commit return earlier`() throws {
    let database = try open(url)
    try database.addCounter()
    standby.stop()
    for isLocal in [1, 0] as [Int64] {
      let fault = try faultOfCommit(
        of: database, whenWaiting: { try primary.execute("SELECT pg_cancel_backend(pid) \(Self.waiting)") }
      ) { database throws(SQLFault) in
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
    let database = try open(url)
    try database.addCounter()
    try primary.execute("ALTER ROLE postgres SET synchronous_commit = local")
    #expect(throws: SQLFault.notSynchronous) { try open(url) }
    try primary.execute("ALTER ROLE postgres RESET synchronous_commit")
    try primary.configure(["synchronous_standby_names = ''"])
    try primary.reload()
    // The server's processes read their configuration in their own time.
    try primary.wait(until: "SELECT current_setting('synchronous_standby_names') = ''")
    #expect(throws: SQLFault.notSynchronous) { try open(url) }
    // One host, which need not replicate.
    try open(primary.url("postgres")).increment()
  }

  @Test func `replication that is switched off is noticed by the next transaction`() throws {
    let database = try open(url)
    try database.addCounter()
    try primary.configure(["synchronous_standby_names = ''"])
    try primary.reload()
    try primary.wait(until: "SELECT current_setting('synchronous_standby_names') = ''")
    #expect(throws: SQLFault.notSynchronous) { try database.increment() }
    #expect(throws: SQLFault.notSynchronous) { try database.check() }
    // Also by one that waits for no answer before its commit.
    let single = try open(primary.url("postgres"))
    #expect(throws: SQLFault.notSynchronous) {
      try database.transaction { session throws(SQLFault) in
        try session.send("UPDATE counters SET count = 7", values: [])
      }
    }
    #expect(try single.counter() == 0)
  }

  @Test func `after a failover, everything that was committed is there, and the former primary is refused`() throws {
    let database = try open(url)
    try database.addCounter()
    for _ in 0..<5 { try database.increment() }
    primary.kill()
    #expect(throws: SQLFault.unavailable) { try database.increment() }
    let third = try promote()
    try database.increment()
    #expect(try database.counter() == 6)

    // Nobody but the former primary is there.
    standby.stop()
    try primary.start()
    #expect(throws: SQLFault.olderTimeline) { try database.increment() }
    #expect(throws: SQLFault.olderTimeline) { try database.counter() }
    #expect(throws: SQLFault.olderTimeline) { try database.check() }

    // A service that has just started and only finds the former primary: no commit ends well.
    let late = try open(primary.url("postgres", with: standby), limits: impatient)
    #expect(throws: SQLFault.uncertain) { try late.increment() }
    #expect(try late.counter() == 5)

    // Both are there: the newer one is taken, although the other is named first.
    try standby.start()
    try standby.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
    try late.increment()
    try database.increment()
    try open(url).increment()
    #expect(try late.counter() == 9)
    third.stop()
  }

  @Test func `a former primary is refused if only its successor's standby answers`() throws {
    try open(url).addCounter()
    primary.kill()
    let third = try promote()
    standby.stop()
    try primary.start()
    #expect(throws: SQLFault.olderTimeline) { try open(primary.url("postgres", with: third)) }
    #expect(throws: SQLFault.olderTimeline) { try open(third.url("postgres", with: primary)) }
  }

  @Test func `a former primary is refused if its successor cannot be used`() throws {
    try open(url).addCounter()
    primary.kill()
    try standby.promote()
    try standby.configure(["synchronous_standby_names = ''"])
    try standby.reload()
    try standby.wait(until: "SELECT current_setting('synchronous_standby_names') = ''")
    try primary.start()
    #expect(throws: SQLFault.notSynchronous) { try open(url) }
    let database = try open(standby.url("postgres"))
    try database.increment()
  }

  /// Makes the standby the primary, with a standby that it waits for.
  private func promote() throws -> PostgreSQLServer {
    try standby.promote()
    let third = try PostgreSQLServer(standbyOf: standby, name: "third")
    try third.start()
    try standby.configure(["synchronous_standby_names = '*'"])
    try standby.reload()
    try standby.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
    return third
  }

  @Test func `a connection to a former primary is not used once a later timeline is known`() throws {
    var limits = impatient
    limits.surveyMilliseconds = .max
    let database = try open(url, limits: limits)
    try database.addCounter()
    // The former primary still runs, without its standby.
    let third = Synchronized<PostgreSQLServer?>(nil)
    try database.read { session throws(SQLFault) in
      try session.run("SELECT 1")
      do {
        let promoted = try promote()
        third.change { $0 = promoted }
      } catch { Issue.record(error) }
      // A new connection to the preferred host, until a commit there does not end.
      #expect(fault { () throws(SQLFault) in try database.increment() } == .uncertain)
      try database.increment()
    }
    // The connection of the read is free now.
    try database.increment()
    #expect(try standby.execute("SELECT count FROM counters") == ["2"])
    third.value?.stop()
  }

  @Test func `a former primary is not used while it is not known whether it has a successor`() throws {
    var limits = SQLLimits.test
    limits.surveyMilliseconds = .max
    let database = try open(url, limits: limits)
    try database.addCounter()
    primary.kill()
    #expect(throws: SQLFault.unavailable) { try database.increment() }
    let third = try promote()
    try open(standby.url("postgres", with: third)).increment()
    try primary.start()
    // The first read asks the former primary, and waits for its successor. So must the second.
    standby.suspend()
    let counts = Synchronized<[Int64]>([])
    var threads: [Thread] = []
    for index in 1...2 {
      threads.append(
        try Thread {
          let count = try? database.counter()
          counts.change { $0.append(count ?? -1) }
        })
      try primary.wait(
        until: "SELECT count(*) = \(index) FROM pg_stat_activity WHERE application_name LIKE 'holdfast%'")
    }
    standby.resume()
    for thread in threads { thread.join() }
    #expect(counts.value == [1, 1])
    third.stop()
  }

  @Test func `a service that asked nothing during a failover does not use the former primary`() throws {
    let database = try open(url)
    try database.addCounter()
    primary.kill()
    let third = try promote()
    try open(standby.url("postgres", with: third)).increment()
    try primary.start()
    // Only now it finds that its connections were lost.
    #expect(try database.counter() == 1)
    try database.increment()
    third.stop()
  }

  @Test func `a commit without a change waits for the standby, too: its answer may rest on another commit`() throws {
    try open(url).addCounter()
    standby.stop()
    // Reading needs no standby, and nor does a service that starts.
    let database = try open(url, limits: impatient)
    #expect(try database.counter() == 0)
    #expect(throws: SQLFault.uncertain) {
      try database.transaction { session throws(SQLFault) in
        try session.run("UPDATE counters SET count = 7 WHERE count = 5")
      }
    }
    #expect(try database.counter() == 0)
  }

  @Test func `a service that only reads finds the successor of a server that goes on answering`() throws {
    let database = try open(url)
    try database.addCounter()
    let third = try promote()
    try open(standby.url("postgres", with: third)).increment()
    #expect(try primary.execute("SELECT count FROM counters") == ["0"])
    #expect(try database.counter() == 1)
    third.stop()
  }

  @Test func `asking the other hosts again closes no connection, whatever becomes of it`() throws {
    let database = try open(url)
    try database.addCounter()
    try database.read { session throws(SQLFault) in
      try session.run("SELECT 1")
      _ = try database.counter()
    }
    let processes = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'holdfast%' ORDER BY pid"
    let before = try primary.execute(processes)
    #expect(before.count == 2)
    standby.suspend()
    #expect(try database.counter() == 0)
    standby.resume()
    standby.stop()
    #expect(try database.counter() == 0)
    #expect(try primary.execute(processes) == before)
  }

  @Test func `a primary that is made read-only is left for its successor`() throws {
    var limits = SQLLimits.test
    limits.surveyMilliseconds = .max
    let database = try open(url, limits: limits)
    try database.addCounter()
    let third = try promote()
    try primary.configure(["default_transaction_read_only = on"])
    try primary.reload()
    try primary.wait(until: "SELECT current_setting('default_transaction_read_only') = 'on'")
    #expect(throws: SQLFault.readOnly) { try database.increment() }
    try database.increment()
    #expect(try standby.execute("SELECT count FROM counters") == ["1"])
    third.stop()
  }

  @Test func `a connection that the server ended is a loss, whatever its fault`() throws {
    var limits = SQLLimits.test
    limits.surveyMilliseconds = .max
    let database = try open(url, limits: limits)
    try database.addCounter()
    let third = Synchronized<PostgreSQLServer?>(nil)
    #expect(throws: SQLFault.slow) {
      try database.transaction { session throws(SQLFault) in
        try session.run("SELECT set_config('idle_in_transaction_session_timeout', '50ms', TRUE)")
        do {
          try primary.wait(
            until: "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE 'holdfast%'")
          primary.kill()
          let promoted = try promote()
          third.change { $0 = promoted }
          try open(standby.url("postgres", with: promoted)).increment()
          try primary.start()
        } catch { Issue.record(error) }
        try session.run("SELECT 1")
      }
    }
    #expect(try database.counter() == 1)
    third.value?.stop()
  }

  @Test func `a service that starts waits for a server that is slow to answer`() throws {
    try open(url).addCounter()
    primary.kill()
    let third = try promote()
    try open(standby.url("postgres", with: third)).increment()
    try primary.start()
    standby.suspend()
    let count = Synchronized<Int64?>(nil)
    let thread = try Thread {
      let read = try? open(url).counter()
      count.change { $0 = read }
    }
    // The former primary answered before the time that a connection has by default.
    let isOld = "backend_start < now() - interval '2.5 s'"
    try primary.wait(
      until: "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name LIKE 'holdfast%' AND \(isOld)")
    standby.resume()
    thread.join()
    #expect(count.value == 1)
    third.stop()
  }

  @Test func `a standby that hangs does not keep a service from starting`() throws {
    try open(url).addCounter()
    var limits = SQLLimits.test
    limits.slowAnswerMilliseconds = 0
    let third = try PostgreSQLServer(standbyOf: primary, name: "third")
    try third.start()
    third.suspend()
    #expect(try open(primary.url("postgres", with: standby, third), limits: limits).counter() == 0)
    third.resume()
  }

  @Test func `a server that was never one with the others is foreign`() throws {
    let unrelated = try PostgreSQLServer.unrelated()
    try unrelated.configure(["synchronous_standby_names = '*'"])
    try unrelated.start()
    let database = try open(primary.url("postgres", with: unrelated))
    try database.addCounter()
    primary.kill()
    #expect(throws: SQLFault.foreign) { try database.increment() }
  }

  @Test func `a standby is not a primary`() throws {
    #expect(throws: SQLFault.unavailable) { try open(standby.url("postgres")) }
  }
}
