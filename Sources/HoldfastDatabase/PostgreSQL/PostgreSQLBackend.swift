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
    try retrying { connection in
      do throws(SQLFault) {
        try migration.run(on: connection, isReplicated: cluster.isReplicated)
        return (.success(()), true)
      } catch { return (.failure(error), false) }
    }
  }

  func transaction<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result {
    try run(["BEGIN ISOLATION LEVEL READ COMMITTED"], isDurable: true, body)
  }

  func read<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result {
    try run(["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"], isDurable: false, body)
  }

  func check() throws(SQLFault) {
    try retrying { connection in
      do throws(SQLFault) {
        try cluster.check(connection)
        return (.success(()), true)
      } catch { return (.failure(error), false) }
    }
  }

  private func run<Result>(
    _ begin: [StaticString], isDurable: Bool, _ body: (any SQLSession) throws(SQLFault) -> Result
  ) throws(SQLFault) -> Result {
    let outcome = try retrying { connection in
      let milliseconds = connection.server.statementMilliseconds
      let givenUpCount = isDurable && connection.server.hasStandbyNames ? cluster.givenUpCount : nil
      let transaction = PostgreSQLTransaction(
        connection, begin: begin, isDurable: isDurable, isReplicated: cluster.isReplicated,
        looksForWaitingCommits: givenUpCount != nil,
        statementMilliseconds: milliseconds == 0 ? nil : milliseconds + limits.answerMilliseconds, limits: limits)
      let outcome = Swift.Result { () throws(SQLFault) in try transaction.perform(body) }
      if let givenUpCount, transaction.hasFoundNoneWaiting { cluster.noteSettled(givenUpCount) }
      return (outcome, transaction.isConnectionUsable)
    }
    return try outcome.get()
  }

  /// Runs something on a connection; again after a collision, at most 10 times in all, and after the loss of a connection, once.
  ///
  /// - Parameter body: Uses a connection, and returns whether it can be used again.
  private func retrying<Result>(
    _ body: (PostgreSQLConnection) -> (Swift.Result<Result, SQLFault>, isUsable: Bool)
  ) throws(SQLFault) -> Result {
    var collisionCount = 0
    var wasLost = false
    while true {
      // A fault of the pool itself is thrown: the hosts have just been asked.
      let outcome = try pool.withConnection { connection in
        let (outcome, isUsable) = body(connection)
        // Whatever its fault, the primary may be another server by now.
        if !isUsable { cluster.noteLoss() }
        // Before another thread gets the place of this connection.
        if case .failure(.uncertain) = outcome { cluster.noteGivenUp() }
        return (outcome, isUsable)
      }
      do throws(SQLFault) {
        return try outcome.get()
      } catch .conflict where collisionCount < 9 {
        collisionCount += 1
        limits.pause(limits.choose(0...10 << min(collisionCount, 6)))
      } catch {
        let isLoss = error == .unavailable || error == .uncertain
        // Such a server may have a successor.
        let isUnfit = error == .readOnly || error == .notSynchronous || error == .olderTimeline
        guard isLoss || isUnfit && cluster.isReplicated else { throw error }
        // The other connections are to the same server.
        cluster.noteLoss()
        pool.closeIdle()
        guard error == .unavailable, !wasLost else { throw error }
        wasLost = true
      }
    }
  }
}
