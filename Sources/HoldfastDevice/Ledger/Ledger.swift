import HoldfastCore
import HoldfastStorage
import Synchronization

/// What a device must never forget: trusted issuers, floors, uses, nonces and the audit log, in `ledger.sqlite`.
///
/// Shared by all threads of a process; other processes may open it too. Whatever writes is one transaction, durable when
/// the call returns.
public final class Ledger: Sendable {
  let limits: LedgerLimits
  /// Whose ledger this was when it was opened.
  let deviceID: DeviceID
  let unproved = UnprovedCounter()
  private let lock = Mutex(())
  /// Touched by the holder of `lock` alone. A `Mutex` around it would not lend it to bodies that are not `Sendable`.
  private nonisolated(unsafe) let tables: LedgerTables

  /// Opens the ledger at `path`.
  init(path: String, limits: LedgerLimits) throws(DatabaseError) {
    let database = try Database(
      path: path, applicationID: LedgerTables.applicationID, schema: LedgerTables.schema, creation: .never,
      busyTimeoutMilliseconds: 5000)
    self.limits = limits
    let tables = LedgerTables(database: database)
    deviceID = try tables.state().deviceID
    unsafe self.tables = tables
  }

  /// Makes the ledger of a new device at `path`, where there must be none, with the clock floor at `realClock`, in Unix
  /// seconds.
  static func create(path: String, deviceID: DeviceID, realClock: UInt64) throws(DatabaseError) {
    let database = try Database(path: path, applicationID: LedgerTables.applicationID, schema: LedgerTables.schema)
    guard database.isNew else { throw .misuse }
    let tables = LedgerTables(database: database)
    try database.transaction { () throws(DatabaseError) in
      var state = LedgerState(deviceID: deviceID, clockFloor: realClock)
      try tables.append(.created(deviceID), time: realClock, to: &state)
      try tables.insert(state)
    }
    try database.checkpoint()
    try database.close()
  }

  /// Lends the tables to `body` for reading.
  func read<Result: Sendable>(
    _ body: (borrowing LedgerTables) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try lock.withLock { _ throws(DatabaseError) in try body(unsafe tables) }
  }

  /// Runs `body` in a transaction over the state, which is written back unless it throws.
  func write<Result: Sendable>(
    _ body: (borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try lock.withLock { _ throws(DatabaseError) in
      let tables = unsafe tables
      return try tables.database.transaction { () throws(DatabaseError) in
        var state = try tables.state()
        let result = try body(tables, &state)
        try tables.save(state)
        return result
      }
    }
  }

  /// Writes one event into the audit log.
  func record(_ event: AuditEvent, realClock: UInt64?) throws(DatabaseError) {
    try write { (tables, state) throws(DatabaseError) in
      try tables.append(event, time: state.time(realClock: realClock), to: &state)
    }
  }

  /// Moves SQLite's write-ahead log into the file.
  func checkpoint() throws(DatabaseError) {
    try read { (tables) throws(DatabaseError) in try tables.database.checkpoint() }
  }
}

extension LedgerFault {
  init(_ error: DatabaseError) {
    self = error == .busy ? .busy : .failed
  }
}
