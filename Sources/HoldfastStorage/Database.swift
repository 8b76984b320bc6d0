/// A durable SQLite database: one connection, for one thread at a time. The caller provides the locking.
///
/// A write is on the disk when the call that makes it returns (write-ahead log, `synchronous=FULL`). SQL is a literal
/// (`StaticString`), so data can only enter as a bound ``Value``.
package final class Database {
  /// The handling of a database that does not exist yet.
  package enum Creation: Sendable {
    /// A missing or empty file becomes a new database.
    case ifMissing
    /// A missing file is `cannotOpen`; an empty one is `corrupt`.
    case never
  }

  /// The extent of the check when a database is opened.
  package enum Check: Sendable {
    /// The whole database: SQLite's quick check.
    case whole
    /// The whole database if it has at most `above` bytes. In a larger file, the named table, which only grows, is left to
    /// ``check()``, and every other table is checked with its indexes.
    case sparing(table: String, above: Int64)
    /// Nothing: another connection of this process has checked the database.
    case skipped
  }

  /// Whether opening created a new database.
  package let isNew: Bool
  var connection: Connection?
  var statements: [UInt: Statement] = [:]
  let rewriting: (String) -> String
  var isInTransaction = false
  /// Whether a commit failed to write the write-ahead log to the disk.
  ///
  /// Transactions that did not wait may then be lost with the log, even if a later synchronisation succeeds, and later
  /// transactions with them. Therefore the log is first moved into the file, page by page.
  var needsCheckpoint = false

  /// Opens a database, creates it if there is none, and brings its schema up to date.
  ///
  /// - Parameters:
  ///   - path: The file; it is created with mode 0600. SQLite puts `-wal` and `-shm` files next to it.
  ///   - applicationID: An id that is written into a new file and compared in an existing one; not 0.
  ///   - schema: SQL scripts; the script at index n takes version n to n + 1. Only ever append.
  ///   - creation: The handling of a database that does not exist yet.
  ///   - check: The extent of the check.
  ///   - busyTimeoutMilliseconds: The least time that a call waits for the lock of another connection before it throws `busy`.
  ///   - rewriting: Turns each script and each statement into SQLite's SQL, before it is prepared.
  /// - Throws: `cannotOpen`, `permission` (also: a file that belongs to another user or is accessible to others), `corrupt`
  ///   (SQLite's quick check fails), `foreign`, `newerVersion`, `busy`, `readOnly`, `full`; `misuse` if `applicationID` is 0.
  package init(
    path: String, applicationID: Int32, schema: [StaticString], creation: Creation = .ifMissing,
    check: Check = .whole, busyTimeoutMilliseconds: Int32 = 1000, rewriting: @escaping (String) -> String = { $0 }
  ) throws(DatabaseError) {
    guard applicationID != 0 else { throw .misuse }
    let wait = LockWait(milliseconds: busyTimeoutMilliseconds)
    let opening = try DatabaseOpening(path: path, creation: creation, wait: wait)
    isNew = try opening.prepare(
      applicationID: applicationID, schema: schema.map { rewriting($0.description) }, creation: creation, check: check)
    self.rewriting = rewriting
    connection = opening.connection
  }

  /// Creates a database in memory, which ends with this object. Nothing in it is durable: it is for simulations.
  ///
  /// - Parameter schema: SQL scripts, which run in their order.
  /// - Throws: `other` if SQLite fails.
  package init(inMemory schema: [StaticString]) throws(DatabaseError) {
    let connection = try Connection(path: ":memory:", wait: LockWait(milliseconds: 0))
    for script in schema { try connection.execute(script.description) }
    (isNew, rewriting) = (true, { $0 })
    self.connection = connection
  }

  /// Runs SQLite's quick check over the whole file, which has no time limit.
  ///
  /// - Throws: `corrupt` if the check finds an error; `busy`; `misuse` if the database is closed.
  package func check() throws(DatabaseError) {
    guard try oneText("PRAGMA quick_check(1)") == "ok" else { throw .corrupt }
  }

  /// The row id of the last row that this connection inserted; 0 if the database is closed.
  package var lastInsertedRowID: Int64 { connection?.lastInsertedRowID ?? 0 }

  /// The least time for which a call waits for the lock of another connection, in milliseconds; 0 if the database is closed.
  package var busyTimeoutMilliseconds: Int32 { connection?.wait.milliseconds ?? 0 }

  /// The number of rows that the last INSERT, UPDATE or DELETE changed; 0 if the database is closed.
  package var changedRowCount: Int { connection?.changedRowCount ?? 0 }

  /// How often this connection has looked at a page, in memory or on the disk: what its statements cost, on whatever machine.
  /// 0 if the database is closed.
  package var pageLookCount: Int { connection?.pageLookCount ?? 0 }

  /// Moves the write-ahead log into the file and empties it, so that deleted secrets are no longer in the database's files.
  ///
  /// - Throws: `busy` if another connection reads or writes; `full`; `misuse` in a transaction or if the database is closed.
  package func checkpoint() throws(DatabaseError) {
    guard let connection, !isInTransaction else { throw .misuse }
    try connection.checkpoint()
  }

  /// Closes the file; every later call throws `misuse`. Closing twice does nothing.
  ///
  /// - Throws: `misuse` in a transaction or during a query.
  package func close() throws(DatabaseError) {
    guard !isInTransaction, !statements.values.contains(where: \.isInUse) else { throw .misuse }
    statements = [:]
    connection = nil
  }
}

extension Database {
  /// Runs statements as one durable unit: when this returns, all of them are on the disk; after an error, none is.
  ///
  /// - Parameter body: Reads and writes this database; an error rolls everything back.
  /// - Returns: The result of the body.
  /// - Throws: `busy` if another connection writes; `misuse` inside another transaction; the errors of the body.
  @discardableResult
  package func transaction<Result>(
    _ body: () throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try transaction(mapping: { $0 }, body)
  }

  /// Runs statements as one durable unit with an error type of the caller.
  ///
  /// - Parameters:
  ///   - mapping: Converts a database error to the caller's error.
  ///   - isKept: Whether to commit for this result. If not, everything is rolled back, and nothing is written to the disk.
  ///   - body: Reads and writes this database; an error rolls everything back.
  /// - Returns: The result of the body.
  /// - Throws: The errors of the body, and the conversions of `busy`, `full`, `misuse` (inside another transaction).
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

  /// Runs statements as a part of the present transaction, which can be undone by itself.
  ///
  /// - Parameters:
  ///   - isKept: Whether the part stays in the transaction for this result. If not, it is undone.
  ///   - body: Reads and writes this database; an error undoes the part.
  /// - Returns: The result of the body.
  /// - Throws: `misuse` outside of a transaction; the errors of the body. SQLite may have rolled back the whole transaction: see
  ///   ``isRolledBack``.
  package func part<Result>(
    isKept: (Result) -> Bool, _ body: () throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    guard isInTransaction else { throw .misuse }
    try run("SAVEPOINT part")
    let result: Result
    do throws(DatabaseError) { result = try body() } catch {
      if !isRolledBack { try undoPart() }
      throw error
    }
    if isKept(result) { try run("RELEASE part") } else { try undoPart() }
    return result
  }

  private func undoPart() throws(DatabaseError) {
    try run("ROLLBACK TO part")
    try run("RELEASE part")
  }

  /// Whether SQLite rolled back the present transaction on its own, after an error.
  package var isRolledBack: Bool { isInTransaction && connection?.isAutocommit != false }

  /// Runs queries on one state of the database. Other connections may write meanwhile; this one does not see it.
  ///
  /// - Parameters:
  ///   - mapping: Converts a database error to the caller's error.
  ///   - body: Reads this database; everything that it writes is rolled back.
  /// - Returns: The result of the body.
  /// - Throws: The errors of the body, and the conversion of `misuse` (inside another transaction).
  package func snapshot<Result, Failure: Error>(
    mapping: (DatabaseError) -> Failure, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard let connection, !isInTransaction else { throw mapping(.misuse) }
    do { try connection.execute("BEGIN") } catch { throw mapping(error) }
    isInTransaction = true
    defer {
      isInTransaction = false
      rollBack(connection)
    }
    return try body()
  }

  /// Runs statements as one unit without waiting for the disk. A power cut may undo the unit, but never splits it; the next
  /// durable transaction makes it durable, too.
  ///
  /// - Parameter body: Reads and writes this database; an error rolls everything back.
  /// - Throws: The errors of the body; `busy`, `full`, `misuse` (inside another transaction). If the database cannot be
  ///   switched back to waiting for the disk, it is closed.
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

  /// Rolls back. The error is ignored: SQLite may have rolled back already, and if a transaction is still open, the next BEGIN
  /// fails.
  private func rollBack(_ connection: Connection) {
    try? connection.execute("ROLLBACK")
  }
}
