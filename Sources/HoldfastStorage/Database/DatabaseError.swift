import CSQLite
import Glibc

/// Why a database refused an operation.
public enum DatabaseError: Error, Equatable, Sendable {
  /// Another connection holds the lock, and the busy timeout has passed.
  case busy
  /// The disk, the quota or the permitted number of pages is exhausted; the transaction is rolled back.
  case full
  /// The file is damaged or no database at all.
  case corrupt
  /// The file or the connection cannot be written.
  case readOnly
  /// The file cannot be opened: it is missing, a symbolic link, or not a regular file.
  case cannotOpen
  /// The system refuses access, or the file belongs to, or is open to, other users.
  case permission
  /// A row breaks a rule of the schema.
  case constraint
  /// The file is the database of another application.
  case foreign
  /// The file was written by a newer version of the schema.
  case newerVersion(found: Int32)
  /// A column holds another type than the one asked for, or a number outside its range; columns count from 0.
  case wrongType(column: Int)
  /// A number that is bound does not fit a signed 64-bit column.
  case outOfRange
  /// The calling code is wrong: a nested transaction, a closed database, a column or parameter that does not exist.
  case misuse
  /// Any other SQLite result, as an extended result code.
  case other(code: Int32)

  /// Translates an extended result code, with the `errno` of the call that failed, if any.
  init(code: Int32, systemErrorNumber: Int32 = 0) {
    switch code & 0xff {
    case SQLITE_BUSY, SQLITE_LOCKED: self = .busy
    case SQLITE_FULL: self = .full
    case SQLITE_CORRUPT, SQLITE_NOTADB: self = .corrupt
    case SQLITE_READONLY: self = .readOnly
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
