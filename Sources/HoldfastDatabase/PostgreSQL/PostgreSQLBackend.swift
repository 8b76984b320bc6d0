import HoldfastLinux
import HoldfastStorage

/// A database of a PostgreSQL server.
final class PostgreSQLBackend: SQLBackend {
  private let cluster: PostgreSQLCluster
  private let pool: ConnectionPool<PostgreSQLConnection>
  private let limits: SQLLimits

  init(
    url: String, applicationID: Int32, name: String, schema: [StaticString], connectionCount: Int, creating: Bool,
    limits: SQLLimits
  ) throws(SQLFault) {
    let cluster = PostgreSQLCluster(settings: try PostgreSQLSettings(url: url, name: name), limits: limits)
    self.cluster = cluster
    self.limits = limits
    pool = try ConnectionPool(
      count: connectionCount, waitMilliseconds: limits.connectionMilliseconds, isUsable: { cluster.isUsable($0) },
      open: { () throws(SQLFault) in try cluster.connect() })
    let migration = PostgreSQLMigration(
      applicationID: applicationID, schema: schema, creating: creating, limits: limits)
    try retrying { () throws(SQLFault) in
      try pool.withConnection { (connection) throws(SQLFault) in
        (try migration.run(on: connection, isReplicated: cluster.isReplicated), true)
      }
    }
  }

  func transaction<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result {
    try attempt("BEGIN ISOLATION LEVEL READ COMMITTED", isDurable: true, body)
  }

  func read<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result {
    try attempt("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", isDurable: false, body)
  }

  func check() throws(SQLFault) {
    try retrying { () throws(SQLFault) in
      try pool.withConnection { (connection) throws(SQLFault) in (try cluster.check(connection), true) }
    }
  }

  private func attempt<Result>(
    _ begin: String, isDurable: Bool, _ body: (any SQLSession) throws(SQLFault) -> Result
  ) throws(SQLFault) -> Result {
    let outcome = try retrying { () throws(SQLFault) in
      let outcome = try pool.withConnection { connection in
        let milliseconds = connection.server.statementMilliseconds
        let transaction = PostgreSQLTransaction(
          connection, begin: begin, isDurable: isDurable, isReplicated: cluster.isReplicated,
          statementMilliseconds: milliseconds == 0 ? nil : milliseconds + limits.answerMilliseconds, limits: limits)
        let outcome = Swift.Result { () throws(SQLFault) in try transaction.perform(body) }
        return (outcome, transaction.isConnectionUsable)
      }
      return try outcome.get()
    }
    return try outcome.get()
  }

  /// Runs a transaction again after a collision, at most 5 times in all, and after the loss of a connection, once.
  private func retrying<Result>(_ run: () throws(SQLFault) -> Result) throws(SQLFault) -> Result {
    var collisionCount = 0
    var wasLost = false
    while true {
      do throws(SQLFault) {
        return try run()
      } catch .conflict where collisionCount < 4 {
        collisionCount += 1
        limits.pause(limits.choose(0...10 << collisionCount))
      } catch {
        // The other connections are to the same server.
        if error == .unavailable || error == .uncertain {
          cluster.noteLoss()
          pool.closeIdle()
        }
        guard error == .unavailable, !wasLost else { throw error }
        wasLost = true
      }
    }
  }
}
