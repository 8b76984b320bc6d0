import HoldfastStorage

/// A database in a file: one connection that writes, and others that read.
final class SQLiteBackend: SQLBackend {
  private let writers: ConnectionPool<SQLiteConnection>
  private let readers: ConnectionPool<SQLiteConnection>

  init(
    path: String, applicationID: Int32, schema: [StaticString], connectionCount: Int, creating: Bool, limits: SQLLimits
  ) throws(SQLFault) {
    let milliseconds = limits.connectionMilliseconds
    writers = try ConnectionPool(count: 1, waitMilliseconds: milliseconds) { () throws(SQLFault) in
      try SQLiteConnection(
        path: path, applicationID: applicationID, schema: schema, creation: creating ? .ifMissing : .never,
        check: .whole, busyTimeoutMilliseconds: milliseconds)
    }
    readers = try ConnectionPool(count: max(connectionCount - 1, 1), waitMilliseconds: milliseconds) {
      () throws(SQLFault) in
      let connection = try SQLiteConnection(
        path: path, applicationID: applicationID, schema: schema, creation: .never, check: .skipped,
        busyTimeoutMilliseconds: milliseconds)
      try connection.forbidWriting()
      return connection
    }
    try writers.withConnection { _ in ((), true) }
  }

  func transaction<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result {
    try use(writers) { (session, database) throws(SQLFault) in
      try database.transaction(mapping: { SQLFault($0) }) { () throws(SQLFault) in try session.perform(body) }
    }
  }

  func read<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result {
    try use(readers) { (session, database) throws(SQLFault) in
      try database.snapshot(mapping: { SQLFault($0) }) { () throws(SQLFault) in try session.perform(body) }
    }
  }

  func check() throws(SQLFault) {
    _ = try read { (session) throws(SQLFault) in try session.rows("SELECT count(*) FROM sqlite_schema") }
  }

  /// Lends a connection, which is used again whatever happens: SQLite has rolled back.
  private func use<Result>(
    _ pool: ConnectionPool<SQLiteConnection>, _ body: (SQLiteSession, Database) throws(SQLFault) -> Result
  ) throws(SQLFault) -> Result {
    let outcome = try pool.withConnection { connection -> (Swift.Result<Result, SQLFault>, Bool) in
      let session = SQLiteSession(connection.database)
      return (Swift.Result { () throws(SQLFault) in try body(session, connection.database) }, true)
    }
    return try outcome.get()
  }
}

/// An open database, which the pool lends to one thread at a time; hence unchecked.
final class SQLiteConnection: @unchecked Sendable {
  let database: Database

  init(
    path: String, applicationID: Int32, schema: [StaticString], creation: Database.Creation, check: Database.Check,
    busyTimeoutMilliseconds: Int
  ) throws(SQLFault) {
    do throws(DatabaseError) {
      database = try Database(
        path: path, applicationID: applicationID, schema: schema, creation: creation, check: check,
        busyTimeoutMilliseconds: Int32(clamping: busyTimeoutMilliseconds), rewriting: Dialect.sqlite)
    } catch { throw SQLFault(error) }
  }

  /// Makes every statement that writes throw `readOnly`.
  func forbidWriting() throws(SQLFault) {
    do throws(DatabaseError) { try database.run("PRAGMA query_only = ON") } catch { throw SQLFault(error) }
  }
}

/// A transaction of SQLite.
final class SQLiteSession: SQLSession {
  private let database: Database
  private var state = SessionState()

  init(_ database: Database) {
    self.database = database
  }

  /// Runs the body; a statement that failed in it makes it fail.
  func perform<Result>(_ body: (any SQLSession) throws(SQLFault) -> Result) throws(SQLFault) -> Result {
    defer { state.end() }
    let result = try body(self)
    if let fault = state.fault { throw fault }
    return result
  }

  /// Runs the statement at once.
  func send(_ sql: StaticString, values: [Value]) throws(SQLFault) -> SQLAnswer {
    let kind = try state.begin(sql, values: values)
    do throws(DatabaseError) {
      let rows = try database.values(sql, bindings: values)
      return SQLAnswer((kind == .query ? 0 : database.changedRowCount, rows.map(SQLRow.init)))
    } catch { throw state.fail(SQLFault(error)) }
  }
}
