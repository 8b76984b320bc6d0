import HoldfastLinux
import HoldfastStorage

/// A transaction on a connection to PostgreSQL.
final class PostgreSQLTransaction: SQLSession {
  private let connection: PostgreSQLConnection
  private let begin: [StaticString]
  private let isDurable: Bool
  private let isReplicated: Bool
  private let looksForWaitingCommits: Bool
  private let statementMilliseconds: Int?
  private let limits: SQLLimits
  private var state = SessionState()
  /// The statements that were not sent to the server yet, and the answers that they will have.
  private var queue: [(statement: PostgreSQLStatement, kind: Dialect.StatementKind, answer: SQLAnswer)] = []
  /// Whether the server has begun the transaction.
  private var hasBegun = false
  /// Whether another transaction can use the connection.
  private(set) var isConnectionUsable = true
  /// Whether it has looked for commits that wait for a standby, and found none.
  private(set) var hasFoundNoneWaiting = false

  /// - Parameters:
  ///   - connection: A connection without a transaction.
  ///   - begin: The statements that begin the transaction.
  ///   - isDurable: Whether the transaction writes, so that its end matters.
  ///   - isReplicated: Whether a commit must be on a standby.
  ///   - looksForWaitingCommits: Whether it begins only if no commit has waited for a standby for long.
  ///   - statementMilliseconds: The time that the server has for the answer to a statement; nil for no limit.
  ///   - limits: The limits of time.
  init(
    _ connection: PostgreSQLConnection, begin: [StaticString], isDurable: Bool, isReplicated: Bool,
    looksForWaitingCommits: Bool, statementMilliseconds: Int?, limits: SQLLimits
  ) {
    self.connection = connection
    self.begin = begin
    self.isDurable = isDurable
    self.isReplicated = isReplicated
    self.looksForWaitingCommits = looksForWaitingCommits
    self.statementMilliseconds = statementMilliseconds
    self.limits = limits
  }

  /// Begins, runs the body, and commits; rolls back after a fault.
  ///
  /// - Returns: The result of the body, or the fault that it threw although no statement had failed.
  /// - Throws: A fault of the server or the connection.
  func perform<Result>(
    _ body: (any SQLSession) throws(SQLFault) -> Result
  ) throws(SQLFault) -> Swift.Result<Result, SQLFault> {
    defer {
      state.end()
      queue = []
    }
    do throws(SQLFault) {
      // Before the body, whose first statement could wait for a row that such a commit has locked.
      if looksForWaitingCommits { try flush() }
      let result = Swift.Result { () throws(SQLFault) in try body(self) }
      // The body may have ignored the fault, or thrown another one because of it.
      if let fault = state.fault { throw fault }
      if isDurable, case .success = result { try commit() } else { rollBack() }
      return result
    } catch {
      if isConnectionUsable { rollBack() }
      throw error
    }
  }

  /// Runs a script of any number of statements.
  @discardableResult
  func run(script: String) throws(SQLFault) -> [PostgreSQLResult] {
    try flush()
    do throws(SQLFault) {
      return try following { () throws(PostgreSQLFailure) in
        try connection.run(script: script, until: statementDeadline)
      }
    } catch { throw state.fail(error) }
  }

  func send(_ sql: StaticString, values: [Value]) throws(SQLFault) -> SQLAnswer {
    let kind = try state.begin(sql, values: values)
    do throws(SQLFault) {
      let statement = try PostgreSQLStatement(sql, values)
      let answer = SQLAnswer { () throws(SQLFault) in try self.flush() }
      queue.append((statement, kind, answer))
      return answer
    } catch { throw state.fail(error) }
  }

  /// The moment by which the server has answered, or is regarded as lost.
  private var statementDeadline: Deadline {
    statementMilliseconds.map { Deadline(afterMilliseconds: $0) } ?? .never
  }

  /// Runs the statements that wait, after those that begin the transaction.
  private func flush() throws(SQLFault) {
    if let fault = state.fault { throw fault }
    do throws(SQLFault) {
      let beginning = try hasBegun ? [] : self.beginning()
      let sent = queue
      queue = []
      var results = try following { () throws(PostgreSQLFailure) in
        try connection.run(beginning + sent.map(\.statement)) { statementDeadline }
      }[...]
      if !hasBegun {
        hasBegun = true
        if isReplicated || looksForWaitingCommits { try checkStandby(results[beginning.count - 1]) }
        results = results.dropFirst(beginning.count)
      }
      for ((_, kind, answer), result) in zip(sent, results) {
        answer.content = (kind == .query ? 0 : result.changedRowCount, try result.rows())
      }
    } catch { throw state.fail(error) }
  }

  private func beginning() throws(SQLFault) -> [PostgreSQLStatement] {
    var statements: [PostgreSQLStatement] = []
    for sql in begin { statements.append(try PostgreSQLStatement(sql)) }
    if looksForWaitingCommits {
      statements.append(try PostgreSQLStatement(Self.waitingCommits, [.integer(Int64(limits.waitingMilliseconds))]))
    } else if isReplicated {
      statements.append(try PostgreSQLStatement("SELECT current_setting('synchronous_standby_names')"))
    }
    return statements
  }

  /// Checks the state of replication when a transaction begins: somebody may have switched it off since the connection was made.
  private func checkStandby(_ answer: PostgreSQLResult) throws(SQLFault) {
    guard !isReplicated || answer.text(0)?.isEmpty == false else { throw .notSynchronous }
    guard looksForWaitingCommits else { return }
    guard answer.text(1) == "0" else { throw .noStandby }
    hasFoundNoneWaiting = true
  }

  /// Counts the commits of this role that have waited for a standby for a number of milliseconds.
  private static let waitingCommits: StaticString = """
    SELECT current_setting('synchronous_standby_names'), (SELECT count(*)::TEXT FROM pg_stat_activity
      WHERE wait_event = 'SyncRep' AND state = 'active' AND query = 'COMMIT' AND usename = session_user
        AND state_change < clock_timestamp() - $1 * INTERVAL '1 ms')
    """

  /// Runs the statements that wait and commits, and waits until the commit is on the disk and on the standby.
  ///
  /// The settings come before the commit because a statement of the body could have lowered them. When the server stops waiting
  /// for the standby, it commits nevertheless, and only warns. No `statement_timeout` ends that wait.
  ///
  /// Source: PostgreSQL 15, 27.2.8 Synchronous Replication; `SyncRepWaitForLSN` in `syncrep.c`.
  private func commit() throws(SQLFault) {
    guard connection.isAlive else {
      isConnectionUsable = false
      throw connection.lost.fault
    }
    // The commit is only sent when the answers to the beginning permit it.
    if !hasBegun { try flush() }
    var statements = queue.map(\.statement)
    statements.append(try PostgreSQLStatement(Self.commitSettings, [.text(connection.server.commitLevel)]))
    if isReplicated { statements.append(try PostgreSQLStatement(Self.mark)) }
    statements.append(try PostgreSQLStatement("COMMIT"))
    let results: [PostgreSQLResult]
    do throws(PostgreSQLFailure) {
      let deadline = Deadline(afterMilliseconds: limits.commitMilliseconds)
      results = try connection.run(statements) { deadline }
    } catch {
      guard error.isConnectionLost else { throw error.fault }
      isConnectionUsable = false
      throw .uncertain
    }
    guard !connection.hasWarned else {
      isConnectionUsable = false
      throw .uncertain
    }
    guard results.last?.command == "COMMIT" else { throw .misuse }
  }

  private static let commitSettings: StaticString =
    "SELECT set_config('client_min_messages', 'warning', TRUE), set_config('synchronous_commit', $1, TRUE)"

  /// Writes to the log. A commit that has written nothing would not wait for the standby, and its answer could rest on what only this
  /// server has.
  private static let mark: StaticString = "SELECT pg_logical_emit_message(TRUE, 'holdfast', '')"

  private func rollBack() {
    guard hasBegun || state.fault != nil else { return }
    _ = try? following { () throws(PostgreSQLFailure) in
      try connection.run(script: "ROLLBACK", until: Deadline(afterMilliseconds: limits.answerMilliseconds))
    }
  }

  /// Notices that the connection is lost.
  private func following<Result>(_ run: () throws(PostgreSQLFailure) -> Result) throws(SQLFault) -> Result {
    do throws(PostgreSQLFailure) {
      return try run()
    } catch {
      if error.isConnectionLost { isConnectionUsable = false }
      throw error.fault
    }
  }
}
