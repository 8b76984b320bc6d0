import HoldfastStorage

/// A reason why the database did not do what was asked. No case contains text or data.
package enum SQLFault: Error, Equatable, Sendable {
  /// No server answers, or the connection was lost before the commit. Nothing has changed; it may be tried again.
  case unavailable
  /// No connection was free, or another transaction held a lock, for longer than the limit. Nothing has changed.
  case busy
  /// A statement took longer than the server permits, or the transaction was idle for too long. Nothing has changed.
  case slow
  /// The disk or the quota is full.
  case full
  /// The database only permits reading, or the server is a standby, or a read wrote.
  case readOnly
  /// The system or the server refuses access.
  case permission
  /// The database is damaged.
  case corrupt
  /// The database belongs to another application.
  case foreign
  /// The database was written by a newer version of the schema.
  case newerVersion
  /// There is no database, and it was not to be created.
  case missing
  /// It is unknown whether the transaction counts: the connection was lost during the commit, the answer took too long, or the
  /// commit may not be on the standby.
  case uncertain
  /// The location names several hosts, and the server does not replicate synchronously.
  case notSynchronous
  /// Commits have waited long for a standby that does not answer. Nothing has changed.
  case noStandby
  /// The server is on an older timeline than one that this database has seen: a former primary.
  case olderTimeline
  /// Deadlocks or serialization failures did not end after several attempts.
  case conflict
  /// A row violates a unique, check or foreign key, is NULL where it must not be, or belongs to an append-only table.
  case constraint
  /// The calling code is wrong: a statement that is not a query or a change, a column that does not exist or has another type, a
  /// number above `Int64.max`, a text with a zero byte, a second row, or a session after its transaction.
  case misuse
  /// Any other reason: an SQLSTATE of five characters, or an extended result code of SQLite in decimal.
  case other(code: String)
}

extension SQLFault {
  /// Converts an error of SQLite.
  init(_ error: DatabaseError) {
    switch error {
    case .busy: self = .busy
    case .full: self = .full
    case .corrupt: self = .corrupt
    case .readOnly: self = .readOnly
    case .cannotOpen: self = .missing
    case .permission: self = .permission
    case .constraint: self = .constraint
    case .foreign: self = .foreign
    case .newerVersion: self = .newerVersion
    case .wrongType, .outOfRange, .misuse: self = .misuse
    case .other(let code): self = .other(code: String(code))
    }
  }

  /// Converts the code of an error that a PostgreSQL server reports.
  ///
  /// Source: PostgreSQL 15, appendix A.
  ///
  /// - Parameter code: Five characters.
  init(sqlState code: String) {
    switch code {
    case "40001", "40P01": self = .conflict
    case "55P03", "53300": self = .busy
    case "57014", "25P03", "25P04": self = .slow
    case "53100": self = .full
    case "25006": self = .readOnly
    case "42501": self = .permission
    case "3D000": self = .missing
    case "08007", "40003": self = .uncertain
    case "08P01": self = .misuse
    case "XX001", "XX002": self = .corrupt
    default:
      switch code.prefix(2) {
      case "08", "57": self = .unavailable
      case "23": self = .constraint
      case "28": self = .permission
      default: self = .other(code: code)
      }
    }
  }
}
