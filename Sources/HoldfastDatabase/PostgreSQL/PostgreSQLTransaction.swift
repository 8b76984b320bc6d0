import HoldfastLinux
import HoldfastStorage

/// A transaction on a connection to PostgreSQL.
final class PostgreSQLTransaction: SQLSession {
  private let connection: PostgreSQLConnection
  private let begin: String
  private let isDurable: Bool
  private let isReplicated: Bool
  private let statementMilliseconds: Int?
  private let limits: SQLLimits
  private var state = SessionState()
  /// Whether another transaction can use the connection.
  private(set) var isConnectionUsable = true

  /// - Parameters:
  ///   - connection: A connection without a transaction.
  ///   - begin: The statement that begins the transaction.
  ///   - isDurable: Whether the transaction writes, so that its end matters.
  ///   - isReplicated: Whether a commit must be on a standby.
  ///   - statementMilliseconds: The time that the server has for the answer to a statement; nil for no limit.
  ///   - limits: The limits of time.
  init(
    _ connection: PostgreSQLConnection, begin: String, isDurable: Bool, isReplicated: Bool,
    statementMilliseconds: Int?, limits: SQLLimits
  ) {
    self.connection = connection
    self.begin = begin
    self.isDurable = isDurable
    self.isReplicated = isReplicated
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
    defer { state.end() }
    do throws(SQLFault) {
      try start()
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
    do throws(SQLFault) {
      return try following { () throws(PostgreSQLFailure) in
        try connection.run(script: script, until: statementDeadline)
      }
    } catch { throw state.fail(error) }
  }

  func execute(
    _ sql: StaticString, values: [Value]
  ) throws(SQLFault) -> (changedRowCount: Int, rows: [SQLRow]) {
    let kind = try state.begin(sql, values: values)
    do throws(SQLFault) {
      let values = try PostgreSQLValues(values)
      let result = try following { () throws(PostgreSQLFailure) in
        try connection.run(sql, values: values, until: statementDeadline)
      }
      return (kind == .query ? 0 : result.changedRowCount, try result.rows())
    } catch { throw state.fail(error) }
  }

  /// The moment by which the server has answered, or is regarded as lost.
  private var statementDeadline: Deadline {
    statementMilliseconds.map { Deadline(afterMilliseconds: $0) } ?? .never
  }

  private func start() throws(SQLFault) {
    let answers = try following { () throws(PostgreSQLFailure) in
      try connection.run(script: begin + "; SHOW synchronous_standby_names", until: statementDeadline)
    }
    // Somebody may have switched replication off since the connection was made.
    guard !isReplicated || answers.last?.text(0)?.isEmpty == false else { throw .notSynchronous }
  }

  /// Commits, and waits until the commit is on the disk and on the standby.
  ///
  /// The settings come first because a statement of the body could have lowered them. When the server stops waiting for the
  /// standby, it commits nevertheless, and only warns. No `statement_timeout` ends that wait.
  ///
  /// Source: PostgreSQL 15, 27.2.8 Synchronous Replication; `SyncRepWaitForLSN` in `syncrep.c`.
  private func commit() throws(SQLFault) {
    guard connection.isAlive else {
      isConnectionUsable = false
      throw connection.lost.fault
    }
    let script = """
      SET LOCAL client_min_messages TO warning; SET LOCAL synchronous_commit TO \(connection.server.commitLevel); COMMIT
      """
    let answers: [PostgreSQLResult]
    do throws(PostgreSQLFailure) {
      answers = try connection.run(script: script, until: Deadline(afterMilliseconds: limits.commitMilliseconds))
    } catch {
      guard error.isConnectionLost else { throw error.fault }
      isConnectionUsable = false
      throw .uncertain
    }
    guard !connection.hasWarned else {
      isConnectionUsable = false
      throw .uncertain
    }
    guard answers.last?.command == "COMMIT" else { throw .misuse }
  }

  private func rollBack() {
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
