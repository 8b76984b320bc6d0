extension Database {
  /// Runs statements as one durable unit: all of them are on the disk when this returns, or none is.
  ///
  /// - Parameter body: Reads and writes this database; an error rolls everything back.
  /// - Returns: What the body returns.
  /// - Throws: `busy` where another connection writes; `misuse` inside another transaction; what the body throws.
  @discardableResult
  public func transaction<Result>(
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
  public func transaction<Result, Failure: Error>(
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
  public func transactionWithoutWaiting(_ body: () throws(DatabaseError) -> Void) throws(DatabaseError) {
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
