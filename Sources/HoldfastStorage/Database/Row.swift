import CSQLite

/// The current row of a query, valid inside the closure that receives it; columns count from 0.
///
/// Every read throws `wrongType` where the column holds another type (NULL too), and `misuse` where there is no such
/// column.
public struct Row: ~Copyable {
  private let statement: Statement

  init(_ statement: Statement) {
    self.statement = statement
  }

  /// Whether a column is NULL.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: True for NULL.
  /// - Throws: `misuse` where there is no such column.
  public func isNull(_ column: Int) throws(DatabaseError) -> Bool {
    try statement.storageClass(of: column) == SQLITE_NULL
  }

  /// Reads a signed integer.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The number.
  /// - Throws: `wrongType`, `misuse`.
  public func integer(_ column: Int) throws(DatabaseError) -> Int64 {
    try statement.integer(in: column)
  }

  /// Reads an unsigned integer.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The number, at most `Int64.max`.
  /// - Throws: `wrongType` also for a negative number; `misuse`.
  public func unsigned(_ column: Int) throws(DatabaseError) -> UInt64 {
    guard let number = UInt64(exactly: try statement.integer(in: column)) else { throw .wrongType(column: column) }
    return number
  }

  /// Reads a blob.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: A copy of its bytes.
  /// - Throws: `wrongType`, `misuse`.
  public func bytes(_ column: Int) throws(DatabaseError) -> [UInt8] {
    try withBytes(column) { (span) throws(DatabaseError) in [UInt8](copying: span) }
  }

  /// Lends the bytes of a blob without copying them, for secrets.
  ///
  /// - Parameters:
  ///   - column: The column, from 0.
  ///   - body: Receives SQLite's own buffer, which lives as long as the row is current.
  /// - Returns: What the body returns.
  /// - Throws: `wrongType`, `misuse`, and what the body throws.
  public func withBytes<Result: ~Copyable>(
    _ column: Int, _ body: (Span<UInt8>) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try statement.withBytes(in: column, body)
  }

  /// Reads a text.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The text.
  /// - Throws: `wrongType`, `misuse`; `corrupt` where it is not UTF-8.
  public func text(_ column: Int) throws(DatabaseError) -> String {
    try statement.text(in: column)
  }
}
