import HoldfastStorage

/// A transaction, for the thread that runs its body.
///
/// Statements are SQL literals with parameters `$1`, `$2` and so on, and begin with SELECT, INSERT, UPDATE, DELETE or WITH.
/// Keywords are written in capitals, and names in lower case: ``Dialect`` rewrites some keywords. After a statement has failed, the
/// transaction cannot be committed, and every later statement throws the same fault.
package protocol SQLSession: AnyObject {
  /// Sends one statement, which runs after those that were sent before and before the transaction ends.
  ///
  /// A database on a server runs it together with the next statement whose answer is read, or with the commit; so a statement
  /// whose answer nobody reads costs no round trip. If it fails, so does that statement, or the transaction.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - values: One value for each parameter, in order of their numbers.
  /// - Returns: The answer, which has to be read before the transaction ends.
  /// - Throws: The faults of ``SQLFault`` but `uncertain`.
  @discardableResult
  func send(_ sql: StaticString, values: [Value]) throws(SQLFault) -> SQLAnswer
}

/// The answer to a statement that was sent in a transaction.
package final class SQLAnswer {
  typealias Content = (changedRowCount: Int, rows: [SQLRow])

  /// The content; nil until it has arrived.
  var content: Content?
  private let wait: () throws(SQLFault) -> Void

  /// - Parameters:
  ///   - content: The content, if it is known.
  ///   - wait: Waits until it has arrived.
  init(_ content: Content? = nil, wait: @escaping () throws(SQLFault) -> Void = {}) {
    (self.content, self.wait) = (content, wait)
  }

  /// Waits for the answer.
  ///
  /// - Returns: The number of rows that an INSERT, UPDATE or DELETE changed, 0 for a SELECT; and the rows that it returned.
  /// - Throws: The faults of ``SQLSession/send(_:values:)``, also of a statement that was sent before this one.
  package func read() throws(SQLFault) -> (changedRowCount: Int, rows: [SQLRow]) {
    if content == nil { try wait() }
    guard let content else { throw .misuse }
    return content
  }
}

extension SQLSession {
  /// Runs one statement and returns its rows.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - values: One value for each parameter, in order of their numbers.
  /// - Returns: The number of rows that an INSERT, UPDATE or DELETE changed, 0 for a SELECT; and the rows that it returned.
  /// - Throws: The faults of ``SQLAnswer/read()``.
  package func execute(
    _ sql: StaticString, values: [Value]
  ) throws(SQLFault) -> (changedRowCount: Int, rows: [SQLRow]) {
    try send(sql, values: values).read()
  }

  /// Runs one statement and discards its rows.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - values: One value for each parameter, in order of their numbers.
  /// - Returns: The number of rows that an INSERT, UPDATE or DELETE changed; 0 for a SELECT.
  /// - Throws: The faults of ``execute(_:values:)``.
  @discardableResult
  package func run(_ sql: StaticString, _ values: Value...) throws(SQLFault) -> Int {
    try execute(sql, values: values).changedRowCount
  }

  /// Runs a query and returns all rows.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - values: One value for each parameter, in order of their numbers.
  /// - Returns: The rows, in order.
  /// - Throws: The faults of ``execute(_:values:)``.
  package func rows(_ sql: StaticString, _ values: Value...) throws(SQLFault) -> [SQLRow] {
    try execute(sql, values: values).rows
  }

  /// Runs a query of at most one row.
  ///
  /// - Parameters:
  ///   - sql: One SQL statement.
  ///   - values: One value for each parameter, in order of their numbers.
  /// - Returns: The row; nil if there is none.
  /// - Throws: The faults of ``execute(_:values:)``; `misuse` if there is a second row.
  package func row(_ sql: StaticString, _ values: Value...) throws(SQLFault) -> SQLRow? {
    let rows = try execute(sql, values: values).rows
    guard rows.count <= 1 else { throw .misuse }
    return rows.first
  }
}

/// A copy of one row of a query. Columns count from 0.
///
/// Every read throws `misuse` if the column holds another type, or if there is no such column. NULL is another type, unless the
/// name of the function begins with `optional`. Booleans of PostgreSQL are the integers 0 and 1, as in SQLite.
package struct SQLRow: Equatable, Sendable {
  /// The columns.
  package let values: [Value]

  init(_ values: [Value]) {
    self.values = values
  }

  /// Reads a signed integer.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The number.
  /// - Throws: `misuse`.
  package func integer(_ column: Int) throws(SQLFault) -> Int64 {
    guard case .integer(let number) = try value(column) else { throw .misuse }
    return number
  }

  /// Reads an unsigned integer.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The number, at most `Int64.max`.
  /// - Throws: `misuse`, also for a negative number.
  package func unsigned(_ column: Int) throws(SQLFault) -> UInt64 {
    guard let number = UInt64(exactly: try integer(column)) else { throw .misuse }
    return number
  }

  /// Reads a blob.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: Its bytes.
  /// - Throws: `misuse`.
  package func bytes(_ column: Int) throws(SQLFault) -> [UInt8] {
    guard case .bytes(let bytes) = try value(column) else { throw .misuse }
    return bytes
  }

  /// Reads a text.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The text.
  /// - Throws: `misuse`.
  package func text(_ column: Int) throws(SQLFault) -> String {
    guard case .text(let text) = try value(column) else { throw .misuse }
    return text
  }

  /// Returns whether a column is NULL.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: True for NULL.
  /// - Throws: `misuse` if there is no such column.
  package func isNull(_ column: Int) throws(SQLFault) -> Bool {
    try value(column) == .null
  }

  /// Reads a signed integer or NULL.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The number; nil for NULL.
  /// - Throws: `misuse`.
  package func optionalInteger(_ column: Int) throws(SQLFault) -> Int64? {
    try isNull(column) ? nil : integer(column)
  }

  /// Reads an unsigned integer or NULL.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The number, at most `Int64.max`; nil for NULL.
  /// - Throws: `misuse`, also for a negative number.
  package func optionalUnsigned(_ column: Int) throws(SQLFault) -> UInt64? {
    try isNull(column) ? nil : unsigned(column)
  }

  /// Reads a blob or NULL.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: Its bytes; nil for NULL.
  /// - Throws: `misuse`.
  package func optionalBytes(_ column: Int) throws(SQLFault) -> [UInt8]? {
    try isNull(column) ? nil : bytes(column)
  }

  /// Reads a text or NULL.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The text; nil for NULL.
  /// - Throws: `misuse`.
  package func optionalText(_ column: Int) throws(SQLFault) -> String? {
    try isNull(column) ? nil : text(column)
  }

  private func value(_ column: Int) throws(SQLFault) -> Value {
    guard values.indices.contains(column) else { throw .misuse }
    return values[column]
  }
}
