import CSQLite

/// A prepared statement: the edge at which values cross into SQLite and back.
@safe final class Statement {
  private let handle: OpaquePointer
  var isInUse = false

  /// Takes over a prepared statement and finalizes it in the end.
  init(adopting handle: OpaquePointer) {
    unsafe self.handle = handle
  }

  deinit {
    unsafe sqlite3_finalize(handle)
  }

  var columnCount: Int { Int(unsafe sqlite3_column_count(handle)) }

  /// Binds all parameters; their number must be exact.
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

  /// Advances to the next row; false when there is none.
  func step() throws(DatabaseError) -> Bool {
    let code = unsafe sqlite3_step(handle)
    switch code {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default:
      throw DatabaseError(
        code: code, systemErrorNumber: unsafe sqlite3_system_errno(unsafe sqlite3_db_handle(handle)))
    }
  }

  /// Ends the execution and drops the copies of bound values.
  func reset() {
    unsafe sqlite3_reset(handle)
    unsafe sqlite3_clear_bindings(handle)
  }

  /// The storage class of a column of the current row.
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

  private func require(_ storageClass: Int32, in column: Int) throws(DatabaseError) {
    guard try self.storageClass(of: column) == storageClass else { throw .wrongType(column: column) }
  }
}
