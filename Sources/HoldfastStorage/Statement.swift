import CSQLite

/// A prepared statement, through which values pass into SQLite and out of it.
@safe final class Statement {
  private let handle: OpaquePointer
  var isInUse = false

  /// Takes over a prepared statement, and finalizes it on release.
  init(adopting handle: OpaquePointer) {
    unsafe self.handle = handle
  }

  deinit {
    unsafe sqlite3_finalize(handle)
  }

  var columnCount: Int { Int(unsafe sqlite3_column_count(handle)) }

  /// Binds all parameters; their number must match.
  func bind(_ values: [Value]) throws(DatabaseError) {
    guard values.count == Int(unsafe sqlite3_bind_parameter_count(handle)) else { throw .misuse }
    var index: Int32 = 1
    for value in values {
      let code = try bind(value, at: index)
      guard code == SQLITE_OK else { throw DatabaseError(code: code) }
      index += 1
    }
  }

  private func bind(_ value: Value, at index: Int32) throws(DatabaseError) -> Int32 {
    switch value {
    case .null: return unsafe sqlite3_bind_null(handle, index)
    case .integer(let number): return unsafe sqlite3_bind_int64(handle, index, number)
    case .unsigned(let number):
      guard let signed = Int64(exactly: number) else { throw .outOfRange }
      return unsafe sqlite3_bind_int64(handle, index, signed)
    case .bytes(let bytes):
      // A null pointer would bind NULL.
      if bytes.isEmpty { return unsafe sqlite3_bind_zeroblob(handle, index, 0) }
      return unsafe bytes.withUnsafeBytes { buffer in
        unsafe holdfast_bind_blob(handle, index, buffer.baseAddress, UInt64(buffer.count))
      }
    case .text(let text):
      return unsafe text.withCString { pointer in
        unsafe holdfast_bind_text(handle, index, pointer, UInt64(text.utf8.count))
      }
    }
  }

  /// Advances to the next row; returns false if there is none.
  func step() throws(DatabaseError) -> Bool {
    let code = unsafe sqlite3_step(handle)
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw unsafe DatabaseError(code, justReturnedFor: sqlite3_db_handle(handle))
    }
  }

  /// Ends the execution and discards the copies of bound values.
  func reset() {
    unsafe sqlite3_reset(handle)
    unsafe sqlite3_clear_bindings(handle)
  }

  /// Returns the storage class of a column in the current row.
  func storageClass(of column: Int) throws(DatabaseError) -> Int32 {
    guard column >= 0, column < columnCount else { throw .misuse }
    return unsafe sqlite3_column_type(handle, Int32(column))
  }

  func integer(in column: Int) throws(DatabaseError) -> Int64 {
    try require(SQLITE_INTEGER, in: column)
    return unsafe sqlite3_column_int64(handle, Int32(column))
  }

  func withBytes<Result: ~Copyable>(
    in column: Int, _ body: (Span<UInt8>) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try require(SQLITE_BLOB, in: column)
    let start = unsafe sqlite3_column_blob(handle, Int32(column))
    let byteCount = Int(unsafe sqlite3_column_bytes(handle, Int32(column)))
    guard unsafe start != nil || byteCount == 0 else { throw .other(code: SQLITE_NOMEM) }
    let buffer = unsafe UnsafeBufferPointer(start: start?.assumingMemoryBound(to: UInt8.self), count: byteCount)
    return try body(unsafe buffer.span)
  }

  func text(in column: Int) throws(DatabaseError) -> String {
    try require(SQLITE_TEXT, in: column)
    guard let start = unsafe sqlite3_column_text(handle, Int32(column)) else { throw .other(code: SQLITE_NOMEM) }
    let byteCount = Int(unsafe sqlite3_column_bytes(handle, Int32(column)))
    let buffer = unsafe UnsafeBufferPointer(start: start, count: byteCount)
    guard let text = unsafe String(validating: buffer, as: UTF8.self) else { throw .corrupt }
    return text
  }

  /// Returns a copy of a column, of whatever type but a floating-point number.
  func value(in column: Int) throws(DatabaseError) -> Value {
    switch try storageClass(of: column) {
    case SQLITE_NULL: return .null
    case SQLITE_INTEGER: return .integer(try integer(in: column))
    case SQLITE_TEXT: return .text(try text(in: column))
    default: return .bytes(try withBytes(in: column) { (span) throws(DatabaseError) in [UInt8](copying: span) })
    }
  }

  private func require(_ storageClass: Int32, in column: Int) throws(DatabaseError) {
    guard try self.storageClass(of: column) == storageClass else { throw .wrongType(column: column) }
  }
}

/// The current row of a query, valid inside the closure that receives it. Columns count from 0.
///
/// Every read throws `wrongType` if the column holds another type (NULL too), and `misuse` if there is no such column.
package struct Row: ~Copyable {
  private let statement: Statement

  init(_ statement: Statement) {
    self.statement = statement
  }

  /// Returns whether a column is NULL.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: True for NULL.
  /// - Throws: `misuse` if there is no such column.
  package func isNull(_ column: Int) throws(DatabaseError) -> Bool {
    try statement.storageClass(of: column) == SQLITE_NULL
  }

  /// Reads a signed integer.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The number.
  /// - Throws: `wrongType`, `misuse`.
  package func integer(_ column: Int) throws(DatabaseError) -> Int64 {
    try statement.integer(in: column)
  }

  /// Reads an unsigned integer.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The number, at most `Int64.max`.
  /// - Throws: `wrongType`, also for a negative number; `misuse`.
  package func unsigned(_ column: Int) throws(DatabaseError) -> UInt64 {
    guard let number = UInt64(exactly: try statement.integer(in: column)) else { throw .wrongType(column: column) }
    return number
  }

  /// Reads a blob.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: A copy of its bytes.
  /// - Throws: `wrongType`, `misuse`.
  package func bytes(_ column: Int) throws(DatabaseError) -> [UInt8] {
    try withBytes(column) { (span) throws(DatabaseError) in [UInt8](copying: span) }
  }

  /// Lends the bytes of a blob without copying them, for secrets.
  ///
  /// - Parameters:
  ///   - column: The column, from 0.
  ///   - body: Receives SQLite's own buffer, which is valid while the row is current.
  /// - Returns: The result of the body.
  /// - Throws: `wrongType`, `misuse`, and the errors of the body.
  package func withBytes<Result: ~Copyable>(
    _ column: Int, _ body: (Span<UInt8>) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try statement.withBytes(in: column, body)
  }

  /// Reads a text.
  ///
  /// - Parameter column: The column, from 0.
  /// - Returns: The text.
  /// - Throws: `wrongType`, `misuse`; `corrupt` if the text is not UTF-8.
  package func text(_ column: Int) throws(DatabaseError) -> String {
    try statement.text(in: column)
  }
}

/// A value to bind to a parameter of an SQL statement.
package enum Value: Equatable, Sendable {
  /// A signed integer.
  case integer(Int64)
  /// An unsigned integer, at most `Int64.max`; binding a larger one throws `outOfRange`.
  case unsigned(UInt64)
  /// A blob; SQLite copies it.
  case bytes([UInt8])
  /// UTF-8 text; SQLite copies it.
  case text(String)
  /// SQL NULL.
  case null

  /// Returns a blob with a copy of the bytes of a span.
  ///
  /// - Parameter span: Any number of bytes.
  /// - Returns: The value.
  package static func copying(_ span: Span<UInt8>) -> Value {
    .bytes([UInt8](copying: span))
  }

  /// Returns an integer; NULL for nil.
  ///
  /// - Parameter number: The number, at most `Int64.max`, or nil.
  /// - Returns: The value.
  package static func optional(_ number: UInt64?) -> Value {
    if let number { .unsigned(number) } else { .null }
  }

  /// Returns a blob; NULL for nil.
  ///
  /// - Parameter bytes: The bytes, or nil.
  /// - Returns: The value.
  package static func optional(_ bytes: [UInt8]?) -> Value {
    if let bytes { .bytes(bytes) } else { .null }
  }

  /// Returns a text; NULL for nil.
  ///
  /// - Parameter text: The text, or nil.
  /// - Returns: The value.
  package static func optional(_ text: String?) -> Value {
    if let text { .text(text) } else { .null }
  }
}

extension [UInt8] {
  /// Copies the bytes of a span, which the standard library cannot do yet.
  init(copying span: Span<UInt8>) {
    unsafe self.init(unsafeUninitializedCapacity: span.count) { buffer, initializedCount in
      unsafe span.withUnsafeBufferPointer { source in
        _ = unsafe buffer.initialize(fromContentsOf: source)
      }
      initializedCount = span.count
    }
  }
}
