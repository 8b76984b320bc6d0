import HoldfastLinux
import HoldfastStorage
import TestPostgreSQL
import Testing

import HoldfastDatabase

/// Finding the primary among several servers: nothing that was committed is lost, and a former primary commits nothing.
@Suite(.enabled(if: PostgreSQLServer.isInstalled, Comment(rawValue: PostgreSQLServer.absence)))
struct PostgreSQLFailoverTests {
  let servers: ServerPair
  var primary: PostgreSQLServer { servers.primary }
  var standby: PostgreSQLServer { servers.standby }

  init() throws { servers = try ServerPair() }

  @Test func `after a failover, everything that was committed is there, and the former primary is refused`() throws {
    let database = try servers.open()
    try database.addCounter()
    for _ in 0..<5 { try database.increment() }
    primary.kill()
    #expect(throws: SQLFault.unavailable) { try database.increment() }
    let third = try servers.promote()
    try database.increment()
    #expect(try database.counter() == 6)

    // Nobody but the former primary is there.
    standby.stop()
    try primary.start()
    #expect(throws: SQLFault.olderTimeline) { try database.increment() }
    #expect(throws: SQLFault.olderTimeline) { try database.counter() }
    #expect(throws: SQLFault.olderTimeline) { try database.check() }

    // A service that has just started and only finds the former primary: no commit ends well.
    let late = try servers.open()
    let fault = try servers.faultOfCommit(
      of: late,
      whenWaiting: {
        #expect(try late.counter() == 5)
        try servers.cancelWaiting()
      })
    #expect(fault == .uncertain)

    // Both are there: the newer one is taken, although the other is named first.
    try standby.start()
    try standby.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
    try late.increment()
    try database.increment()
    try servers.open().increment()
    #expect(try late.counter() == 9)
    third.stop()
  }

  @Test func `a former primary is refused if only its successor's standby answers`() throws {
    try servers.open().addCounter()
    primary.kill()
    let third = try servers.promote()
    standby.stop()
    try primary.start()
    #expect(throws: SQLFault.olderTimeline) { try servers.open(primary.url("postgres", with: third)) }
    #expect(throws: SQLFault.olderTimeline) { try servers.open(third.url("postgres", with: primary)) }
  }

  @Test func `a former primary is refused if its successor cannot be used`() throws {
    try servers.open().addCounter()
    primary.kill()
    try standby.promote()
    try standby.configure(["synchronous_standby_names = ''"])
    try standby.reload()
    try standby.wait(until: "SELECT current_setting('synchronous_standby_names') = ''")
    try primary.start()
    #expect(throws: SQLFault.notSynchronous) { try servers.open() }
    let database = try servers.open(standby.url("postgres"))
    try database.increment()
  }

  @Test func `a connection to a former primary is not used once a later timeline is known`() throws {
    var limits = SQLLimits.test
    limits.surveyMilliseconds = .max
    let database = try servers.open(limits: limits)
    try database.addCounter()
    // The former primary still runs, without its standby.
    let third = Synchronized<PostgreSQLServer?>(nil)
    try database.read { session throws(SQLFault) in
      try session.run("SELECT 1")
      do {
        let promoted = try servers.promote()
        third.change { $0 = promoted }
        // A new connection to the preferred host, until a commit there does not end.
        #expect(try servers.faultOfCommit(of: database, whenWaiting: servers.cancelWaiting) == .uncertain)
      } catch { Issue.record(error) }
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
    let database = try servers.open(limits: limits)
    try database.addCounter()
    primary.kill()
    #expect(throws: SQLFault.unavailable) { try database.increment() }
    let third = try servers.promote()
    try servers.open(standby.url("postgres", with: third)).increment()
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
    let database = try servers.open()
    try database.addCounter()
    primary.kill()
    let third = try servers.promote()
    try servers.open(standby.url("postgres", with: third)).increment()
    try primary.start()
    // Only now it finds that its connections were lost.
    #expect(try database.counter() == 1)
    try database.increment()
    third.stop()
  }

  @Test func `a service that only reads finds the successor of a server that goes on answering`() throws {
    let database = try servers.open()
    try database.addCounter()
    let third = try servers.promote()
    try servers.open(standby.url("postgres", with: third)).increment()
    #expect(try primary.execute("SELECT count FROM counters") == ["0"])
    #expect(try database.counter() == 1)
    third.stop()
  }

  @Test func `asking the other hosts again closes no connection, whatever becomes of it`() throws {
    let database = try servers.open(servers.url(options: "connect_timeout=5"))
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
    let database = try servers.open(limits: limits)
    try database.addCounter()
    let third = try servers.promote()
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
    let database = try servers.open(limits: limits)
    try database.addCounter()
    let third = Synchronized<PostgreSQLServer?>(nil)
    #expect(throws: SQLFault.slow) {
      try database.transaction { session throws(SQLFault) in
        try session.run("SELECT set_config('idle_in_transaction_session_timeout', '50ms', TRUE)")
        do {
          try primary.wait(
            until: "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE 'holdfast%'")
          primary.kill()
          let promoted = try servers.promote()
          third.change { $0 = promoted }
          try servers.open(standby.url("postgres", with: promoted)).increment()
          try primary.start()
        } catch { Issue.record(error) }
        try session.run("SELECT 1")
      }
    }
    #expect(try database.counter() == 1)
    third.value?.stop()
  }

  @Test func `a service that starts waits for a server that is slow to answer`() throws {
    try servers.open().addCounter()
    primary.kill()
    let third = try servers.promote()
    try servers.open(standby.url("postgres", with: third)).increment()
    try primary.start()
    standby.suspend()
    let count = Synchronized<Int64?>(nil)
    let thread = try Thread {
      let read = try? servers.open(servers.url(options: "connect_timeout=2")).counter()
      count.change { $0 = read }
    }
    // The former primary answered before the time that a connection has.
    let isOld = "backend_start < now() - interval '2.5 s'"
    try primary.wait(
      until: "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name LIKE 'holdfast%' AND \(isOld)")
    standby.resume()
    thread.join()
    #expect(count.value == 1)
    third.stop()
  }

  @Test func `a standby that hangs does not keep a service from starting`() throws {
    try servers.open().addCounter()
    var limits = SQLLimits.test
    limits.slowAnswerMilliseconds = 0
    limits.surveyMilliseconds = .max
    let third = try PostgreSQLServer(standbyOf: primary, name: "third")
    try third.start()
    third.suspend()
    let url = primary.url("postgres", with: standby, third, options: "connect_timeout=5")
    #expect(try servers.open(url, limits: limits).counter() == 0)
    third.resume()
  }

  @Test func `a server that was never one with the others is foreign`() throws {
    let unrelated = try PostgreSQLServer.unrelated()
    try unrelated.configure(["synchronous_standby_names = '*'"])
    try unrelated.start()
    let database = try servers.open(primary.url("postgres", with: unrelated))
    try database.addCounter()
    primary.kill()
    #expect(throws: SQLFault.foreign) { try database.increment() }
  }

  @Test func `a standby is not a primary`() throws {
    #expect(throws: SQLFault.unavailable) { try servers.open(standby.url("postgres")) }
  }
}
