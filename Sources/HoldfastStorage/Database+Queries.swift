extension Database {
  /// Runs one statement and discards its rows.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  /// - Returns: The number of rows that the last INSERT, UPDATE or DELETE changed.
  /// - Throws: `busy`, `full`, `readOnly`, `constraint`, `corrupt`, `outOfRange`, `misuse`, `other`.
  @discardableResult
  package func run(_ sql: StaticString, _ bindings: Value...) throws(DatabaseError) -> Int {
    try run(sql, bindings: bindings)
  }

  /// Runs one statement with an array of values, and discards its rows.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  /// - Returns: The number of rows that the last INSERT, UPDATE or DELETE changed.
  /// - Throws: The errors of the other `run`.
  @discardableResult
  package func run(_ sql: StaticString, bindings: [Value]) throws(DatabaseError) -> Int {
    try execute(sql, bindings) { (statement) throws(DatabaseError) in
      while try statement.step() {}
    }
    return connection?.changedRowCount ?? 0
  }

  /// Runs a query and passes each row to `body`.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  ///   - body: Called for each row; an error ends the query.
  /// - Throws: The errors of `run`, and those of the body.
  package func query(
    _ sql: StaticString, _ bindings: Value..., body: (borrowing Row) throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    try execute(sql, bindings) { (statement) throws(DatabaseError) in
      while try statement.step() { try body(Row(statement)) }
    }
  }

  /// Runs a query and collects the result of `body` for each row.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  ///   - body: Called for each row; an error ends the query.
  /// - Returns: The results, in the order of the rows.
  /// - Throws: The errors of `run`, and those of the body.
  package func all<Element>(
    _ sql: StaticString, _ bindings: Value..., body: (borrowing Row) throws(DatabaseError) -> Element
  ) throws(DatabaseError) -> [Element] {
    var elements: [Element] = []
    try execute(sql, bindings) { (statement) throws(DatabaseError) in
      while try statement.step() { elements.append(try body(Row(statement))) }
    }
    return elements
  }

  /// Runs a query with an array of values, and returns each row as values.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  /// - Returns: The rows, in order; integers are `integer`.
  /// - Throws: The errors of `run`; `wrongType` for a column with a floating-point number.
  package func values(_ sql: StaticString, bindings: [Value]) throws(DatabaseError) -> [[Value]] {
    var rows: [[Value]] = []
    try execute(sql, bindings) { (statement) throws(DatabaseError) in
      while try statement.step() {
        var row: [Value] = []
        for column in 0..<statement.columnCount { row.append(try statement.value(in: column)) }
        rows.append(row)
      }
    }
    return rows
  }

  /// Runs a query of at most one row.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  ///   - body: Reads the row.
  /// - Returns: The result of the body; nil if there is no row.
  /// - Throws: The errors of `run`; `misuse` if there is a second row; the errors of the body.
  package func one<Element: ~Copyable>(
    _ sql: StaticString, _ bindings: Value..., body: (borrowing Row) throws(DatabaseError) -> Element
  ) throws(DatabaseError) -> Element? {
    try single(sql, bindings, body)
  }

  /// Reads the first column of a query of at most one row as a signed integer.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  /// - Returns: The number; nil if there is no row.
  /// - Throws: The errors of `one`, and `wrongType`.
  package func oneInteger(_ sql: StaticString, _ bindings: Value...) throws(DatabaseError) -> Int64? {
    try single(sql, bindings) { (row) throws(DatabaseError) in try row.integer(0) }
  }

  /// Reads the first column of a query of at most one row as an unsigned integer.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  /// - Returns: The number, at most `Int64.max`; nil if there is no row.
  /// - Throws: The errors of `one`, and `wrongType`.
  package func oneUnsigned(_ sql: StaticString, _ bindings: Value...) throws(DatabaseError) -> UInt64? {
    try single(sql, bindings) { (row) throws(DatabaseError) in try row.unsigned(0) }
  }

  /// Reads the first column of a query of at most one row as a blob.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  /// - Returns: The bytes; nil if there is no row.
  /// - Throws: The errors of `one`, and `wrongType`.
  package func oneBytes(_ sql: StaticString, _ bindings: Value...) throws(DatabaseError) -> [UInt8]? {
    try single(sql, bindings) { (row) throws(DatabaseError) in try row.bytes(0) }
  }

  /// Reads the first column of a query of at most one row as a text.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - bindings: One value for each parameter, in order.
  /// - Returns: The text; nil if there is no row.
  /// - Throws: The errors of `one`, and `wrongType`.
  package func oneText(_ sql: StaticString, _ bindings: Value...) throws(DatabaseError) -> String? {
    try single(sql, bindings) { (row) throws(DatabaseError) in try row.text(0) }
  }

  private func single<Element: ~Copyable>(
    _ sql: StaticString, _ bindings: [Value], _ body: (borrowing Row) throws(DatabaseError) -> Element
  ) throws(DatabaseError) -> Element? {
    var element: Element?
    try execute(sql, bindings) { (statement) throws(DatabaseError) in
      guard try statement.step() else { return }
      element = try body(Row(statement))
      guard try !statement.step() else { throw .misuse }
    }
    return element
  }

  private func execute(
    _ sql: StaticString, _ bindings: [Value], _ body: (Statement) throws(DatabaseError) -> Void
  ) throws(DatabaseError) {
    guard let connection else { throw .misuse }
    // SQLite itself rolls back on some errors; a caller that ignores one must not continue outside the transaction.
    guard !(isInTransaction && connection.isAutocommit) else { throw .misuse }
    let statement = try statement(for: sql, in: connection)
    statement.isInUse = true
    defer {
      statement.reset()
      statement.isInUse = false
    }
    try statement.bind(bindings)
    try body(statement)
  }

  /// Returns the cached statement, or a new one if a running query uses the cached one.
  private func statement(for sql: StaticString, in connection: Connection) throws(DatabaseError) -> Statement {
    guard sql.hasPointerRepresentation else { throw .misuse }
    let key = UInt(bitPattern: unsafe sql.utf8Start)
    if let cached = statements[key] {
      return cached.isInUse ? try connection.prepare(rewriting(sql.description)) : cached
    }
    let statement = try connection.prepare(rewriting(sql.description))
    statements[key] = statement
    return statement
  }
}
