import HoldfastLinux
import TestPostgreSQL

import HoldfastDatabase

/// A primary with a synchronous standby.
struct ServerPair {
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

  func url(options: String = "") -> String { primary.url("postgres", with: standby, options: options) }

  /// Opens a database with the pair's address, or with another one.
  func open(_ url: String? = nil, limits: SQLLimits = .test) throws(SQLFault) -> SQLDatabase {
    try SQLDatabase(
      .postgreSQL(url: url ?? self.url()), applicationID: testApplicationID, schema: testSchema, connectionCount: 4,
      limits: limits)
  }

  /// The end of a query for the sessions whose commits wait for a standby.
  static let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

  /// Adds one to the counter while the standby is away, does something to the commit that waits, and returns its fault.
  func faultOfCommit(
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

  /// Cuts the wait of commits short: they are uncertain.
  func cancelWaiting() throws { try primary.execute("SELECT pg_cancel_backend(pid) \(Self.waiting)") }

  /// Makes the standby the primary, with a standby that it waits for.
  func promote() throws -> PostgreSQLServer {
    try standby.promote()
    let third = try PostgreSQLServer(standbyOf: standby, name: "third")
    try third.start()
    try standby.configure(["synchronous_standby_names = '*'"])
    try standby.reload()
    try standby.wait(until: "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
    return third
  }
}

extension SQLLimits {
  /// Limits with which a commit that waits for a standby is given up.
  static var impatient: SQLLimits {
    var limits = test
    limits.commitMilliseconds = 2000
    return limits
  }
}
