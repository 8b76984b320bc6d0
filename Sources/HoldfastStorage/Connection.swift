import CSQLite
import Glibc

/// An open SQLite handle. Only this type opens, closes and prepares.
@safe final class Connection {
  private let handle: OpaquePointer
  let wait: LockWait

  /// Opens an existing file for reading and writing.
  init(path: String, wait: LockWait) throws(DatabaseError) {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE
    let code = unsafe path.withCString { unsafe sqlite3_open_v2($0, &opened, flags, nil) }
    guard let handle = unsafe opened else { throw .other(code: SQLITE_NOMEM) }
    unsafe self.handle = handle
    self.wait = wait
    guard code == SQLITE_OK else { throw error(code) }
    // SQLite falls back to read-only access if the file cannot be written, and reports that only at the first write.
    guard unsafe sqlite3_db_readonly(handle, "main") == 0 else { throw .readOnly }
    // The limit is the pointer, so that nothing has to outlive the handle.
    unsafe sqlite3_busy_handler(
      handle, { (limit, looks) in LockWait(milliseconds: Int32(Int(bitPattern: limit))).pause(after: looks) ? 1 : 0 },
      UnsafeMutableRawPointer(bitPattern: Int(wait.milliseconds)))
    let switches: [(option: Int32, value: Int32)] = [
      (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_DQS_DML, 0),
      (SQLITE_DBCONFIG_DQS_DDL, 0), (SQLITE_DBCONFIG_ENABLE_FKEY, 1),
    ]
    for (option, value) in switches {
      let code = unsafe holdfast_set_switch(handle, option, value)
      guard code == SQLITE_OK else { throw error(code) }
    }
  }

  deinit {
    // Statements may be finalized after the connection; this variant of close waits for them.
    unsafe sqlite3_close_v2(handle)
  }

  /// Whether no transaction is open.
  var isAutocommit: Bool { unsafe sqlite3_get_autocommit(handle) != 0 }

  var changedRowCount: Int { Int(unsafe sqlite3_changes64(handle)) }

  var lastInsertedRowID: Int64 { unsafe sqlite3_last_insert_rowid(handle) }

  var pageLookCount: Int {
    [SQLITE_DBSTATUS_CACHE_HIT, SQLITE_DBSTATUS_CACHE_MISS].reduce(0) { sum, figure in
      var (count, highest): (Int32, Int32) = (0, 0)
      unsafe sqlite3_db_status(handle, figure, &count, &highest, 0)
      return sum + Int(count)
    }
  }

  /// Runs a script of any number of statements and discards the rows.
  func execute(_ script: String) throws(DatabaseError) {
    let code = unsafe script.withCString { unsafe sqlite3_exec(handle, $0, nil, nil, nil) }
    guard code == SQLITE_OK else { throw error(code) }
  }

  /// Prepares a single statement. Text after it throws `misuse`.
  func prepare(_ sql: String) throws(DatabaseError) -> Statement {
    var prepared: OpaquePointer?
    let (code, isSingle) = unsafe sql.withCString { start -> (Int32, Bool) in
      var tail: UnsafePointer<CChar>?
      let code = unsafe sqlite3_prepare_v3(handle, start, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, &tail)
      return (code, unsafe Self.isBlank(tail))
    }
    guard code == SQLITE_OK else { throw error(code) }
    guard let prepared = unsafe prepared else { throw .misuse }
    let statement = unsafe Statement(adopting: prepared)
    guard isSingle else { throw .misuse }
    return statement
  }

  /// Moves the write-ahead log into the database, and empties it unless `mode` is another of SQLite's modes.
  func checkpoint(mode: Int32 = SQLITE_CHECKPOINT_TRUNCATE) throws(DatabaseError) {
    let code = unsafe sqlite3_wal_checkpoint_v2(handle, nil, mode, nil, nil)
    guard code == SQLITE_OK else { throw error(code) }
  }

  private func error(_ code: Int32) -> DatabaseError { unsafe DatabaseError(code, justReturnedFor: handle) }

  private static func isBlank(_ text: UnsafePointer<CChar>?) -> Bool {
    guard var cursor = unsafe text else { return true }
    while unsafe cursor.pointee != 0 {
      guard unsafe [0x20, 0x09, 0x0a, 0x0d, 0x3b].contains(cursor.pointee) else { return false }
      unsafe cursor += 1
    }
    return true
  }
}

/// A reason why a database refused an operation.
public enum DatabaseError: Error, Equatable, Sendable {
  /// Another connection holds the lock, and the busy timeout has passed.
  case busy
  /// The disk, the quota or the permitted number of pages is exhausted; the transaction is rolled back.
  case full
  /// The file is damaged or not a database.
  case corrupt
  /// The file or the connection is read-only.
  case readOnly
  /// The file cannot be opened: it is missing, a symbolic link, or not a regular file.
  case cannotOpen
  /// The system refuses access, or the file belongs to another user or is accessible to other users.
  case permission
  /// A row violates a constraint of the schema.
  case constraint
  /// The file is the database of another application.
  case foreign
  /// The file was written by a newer version of the schema.
  case newerVersion(found: Int32)
  /// A column holds another type than the requested one, or a number outside its range. Columns count from 0.
  case wrongType(column: Int)
  /// A number to bind does not fit into a signed 64-bit column.
  case outOfRange
  /// The calling code is wrong: a nested transaction, a closed database, or a column or parameter that does not exist.
  case misuse
  /// Any other result of SQLite, as an extended result code.
  case other(code: Int32)

  /// Translates the extended result code that a call of SQLite on this connection has just returned.
  ///
  /// SQLite does not note the `errno` of every failure, such as that of a commit. The thread's own is then still that of the call
  /// that failed.
  init(_ code: Int32, justReturnedFor connection: OpaquePointer?) {
    let last = errno
    let noted = unsafe sqlite3_system_errno(connection)
    self.init(code: code, systemErrorNumber: noted == 0 ? last : noted)
  }

  /// Translates an extended result code, with the `errno` of the call that failed, if any.
  package init(code: Int32, systemErrorNumber: Int32 = 0) {
    switch code & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED: self = .busy
    case SQLITE_FULL: self = .full
    case SQLITE_CORRUPT, SQLITE_NOTADB: self = .corrupt
    case SQLITE_READONLY: self = .readOnly
    case SQLITE_IOERR where systemErrorNumber == EROFS, SQLITE_CANTOPEN where systemErrorNumber == EROFS:
      self = .readOnly
    case SQLITE_PERM, SQLITE_AUTH: self = .permission
    case SQLITE_CANTOPEN:
      self = systemErrorNumber == EACCES || systemErrorNumber == EPERM ? .permission : .cannotOpen
    case SQLITE_IOERR where systemErrorNumber == ENOSPC || systemErrorNumber == EDQUOT: self = .full
    case SQLITE_CONSTRAINT: self = .constraint
    case SQLITE_MISUSE, SQLITE_RANGE: self = .misuse
    default: self = .other(code: code)
    }
  }
}

/// The wait of a connection for the lock of another one. It looks every millisecond.
///
/// SQLite's own waiting soon looks only every 100 ms, and can miss every moment between two transactions for seconds if others write
/// without a pause.
package struct LockWait: Sendable {
  /// The number of pauses of a millisecond. On a busy machine each takes longer, and so does the wait.
  let milliseconds: Int32

  package init(milliseconds: Int32) {
    self.milliseconds = milliseconds
  }

  /// Pauses for a millisecond after this many looks and pauses, and returns whether to look again. Returns false at once when the wait
  /// is over.
  package func pause(after looks: Int32) -> Bool {
    guard looks < milliseconds else { return false }
    usleep(1000)
    return true
  }
}
