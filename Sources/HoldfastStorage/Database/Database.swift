/// A durable SQLite database: one connection, for one thread at a time; the caller locks.
///
/// A write is on the disk when the call that makes it returns (write-ahead log, `synchronous=FULL`). SQL is a literal
/// (`StaticString`), so that data can only come in as a bound ``Value``.
package final class Database {
  /// What opening does where there is no database yet.
  package enum Creation: Sendable {
    /// A missing or empty file becomes a new database.
    case ifMissing
    /// A missing file is `cannotOpen`; an empty one is `corrupt`.
    case never
  }

  /// How much of a database is looked at when it is opened.
  package enum Check: Sendable {
    /// All of it: SQLite's quick check.
    case whole
    /// All of it up to so many bytes. A longer file's table of this name, which only grows, is left to ``check()``; every other
    /// table and its indexes are looked at.
    case sparing(table: String, above: Int64)
  }

  /// Whether opening has made a new database.
  package let isNew: Bool
  var connection: Connection?
  var statements: [UInt: Statement] = [:]
  var isInTransaction = false
  /// Whether the disk failed to take the write-ahead log. Transactions that did not wait may be lost with it, however often the
  /// disk is asked again, and so would be what follows them: the log is moved into the file first, page by page.
  var needsCheckpoint = false

  /// Opens a database, creates it where there is none, and brings its schema up to date.
  ///
  /// - Parameters:
  ///   - path: The file; it is created with mode 0600. SQLite puts `-wal` and `-shm` files beside it.
  ///   - applicationID: Written into a new file, compared in an existing one; not 0.
  ///   - schema: SQL scripts; the script at index n takes version n to n + 1. Only ever append.
  ///   - creation: What to do where there is no database yet.
  ///   - check: How much of it is looked at.
  ///   - busyTimeoutMilliseconds: How long a call waits for the lock of another connection before it throws `busy`.
  /// - Throws: `cannotOpen`, `permission` (also: a file of another user, or open to others), `corrupt` (SQLite's
  ///   quick check fails), `foreign`, `newerVersion`, `busy`, `readOnly`, `full`; `misuse` where `applicationID` is 0.
  package init(
    path: String, applicationID: Int32, schema: [StaticString], creation: Creation = .ifMissing,
    check: Check = .whole, busyTimeoutMilliseconds: Int32 = 1000
  ) throws(DatabaseError) {
    guard applicationID != 0 else { throw .misuse }
    let opening = try DatabaseOpening(path: path, creation: creation, busyTimeoutMilliseconds: busyTimeoutMilliseconds)
    isNew = try opening.prepare(applicationID: applicationID, schema: schema, creation: creation, check: check)
    connection = opening.connection
  }

  /// Runs SQLite's quick check over the whole file, however long that takes.
  ///
  /// - Throws: `corrupt` where it finds anything; `busy`; `misuse` when closed.
  package func check() throws(DatabaseError) {
    guard try oneText("PRAGMA quick_check(1)") == "ok" else { throw .corrupt }
  }

  /// The row id of the last row this connection has inserted.
  package var lastInsertedRowID: Int64 { connection?.lastInsertedRowID ?? 0 }

  /// Moves the write-ahead log into the file and empties it, so that deleted secrets leave the disk's files.
  ///
  /// - Throws: `busy` where another connection reads or writes; `full`; `misuse` in a transaction or when closed.
  package func checkpoint() throws(DatabaseError) {
    guard let connection, !isInTransaction else { throw .misuse }
    try connection.checkpoint()
  }

  /// Closes the file; every later call throws `misuse`. Closing twice does nothing.
  ///
  /// - Throws: `misuse` in a transaction or in a query.
  package func close() throws(DatabaseError) {
    guard !isInTransaction, !statements.values.contains(where: \.isInUse) else { throw .misuse }
    statements = [:]
    connection = nil
  }
}

extension Database {
  /// Runs statements as one durable unit: all of them are on the disk when this returns, or none is.
  ///
  /// - Parameter body: Reads and writes this database; an error rolls everything back.
  /// - Returns: What the body returns.
  /// - Throws: `busy` where another connection writes; `misuse` inside another transaction; what the body throws.
  @discardableResult
  package func transaction<Result>(
    _ body: () throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try transaction(mapping: { $0 }, body)
  }

  /// Runs statements as one durable unit with an error type of the caller.
  ///
  /// - Parameters:
  ///   - mapping: Makes the caller's error of a database error.
  ///   - isKept: Whether a result is to be kept; where not, everything is rolled back, and nothing is brought to the disk.
  ///   - body: Reads and writes this database; an error rolls everything back.
  /// - Returns: What the body returns.
  /// - Throws: What the body throws, and what `mapping` makes of `busy`, `full`, `misuse` (inside another transaction).
  @discardableResult
  package func transaction<Result, Failure: Error>(
    mapping: (DatabaseError) -> Failure, isKept: (Result) -> Bool = { _ in true }, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard let connection, !isInTransaction else { throw mapping(.misuse) }
    do throws(DatabaseError) {
      if needsCheckpoint { try connection.checkpoint() }
      needsCheckpoint = false
      try connection.execute("BEGIN IMMEDIATE")
    } catch { throw mapping(error) }
    isInTransaction = true
    defer { isInTransaction = false }
    let result: Result
    do {
      result = try body()
    } catch {
      rollBack(connection)
      throw error
    }
    guard isKept(result) else {
      rollBack(connection)
      return result
    }
    do {
      try connection.execute("COMMIT")
    } catch {
      needsCheckpoint = true
      rollBack(connection)
      throw mapping(error)
    }
    return result
  }

  /// Runs statements as one unit that does not wait for the disk: a power cut may undo it, but never splits it, and the next
  /// durable transaction makes it durable, too.
  ///
  /// - Parameter body: Reads and writes this database; an error rolls everything back.
  /// - Throws: What the body throws; `busy`, `full`, `misuse` (inside another transaction). If the database cannot be made to
  ///   wait again, it is closed.
  package func transactionWithoutWaiting(_ body: () throws(DatabaseError) -> Void) throws(DatabaseError) {
    guard let connection, !isInTransaction else { throw .misuse }
    try connection.execute("PRAGMA synchronous = NORMAL")
    let outcome = Result { () throws(DatabaseError) in try transaction(body) }
    do { try connection.execute("PRAGMA synchronous = FULL") } catch {
      statements = [:]
      self.connection = nil
      throw error
    }
    try outcome.get()
  }

  /// Rolls back, which fails where SQLite has already done so; where a transaction is open still, the next BEGIN fails.
  private func rollBack(_ connection: Connection) {
    try? connection.execute("ROLLBACK")
  }
}
