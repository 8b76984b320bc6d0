import HoldfastCore
import HoldfastStorage
import Synchronization

/// A ledger of the facts that a device must never lose: trusted issuers, floors, uses, nonces, users and the audit log, in
/// `ledger.sqlite`.
///
/// All threads of a process share it; other processes may open it too. Every change is one transaction, and durable when the
/// call returns.
package final class Ledger: Sendable {
  let limits: LedgerLimits
  /// The id of the device whose ledger this was when it was opened.
  let deviceID: DeviceID
  /// The path of the TPM that anchored the ledger when it was made; nil for a ledger without an anchor.
  let tpm: String?
  package let unproved = UnauthenticatedCounter()
  let running = RunningRequests()
  package let denied = DeniedCounter()
  private let anchor: LedgerAnchor?
  private let lock = Mutex(())
  /// The tables, which only the holder of `lock` uses. A `Mutex` around them would not lend them to bodies that are not
  /// `Sendable`.
  private nonisolated(unsafe) let tables: LedgerTables

  /// The length in bytes up to which opening the file checks the audit log too. Beyond it, only ``verifyAudit()`` does. The
  /// tables that decide rounds are checked each time.
  static let checkedByteCount: Int64 = 64 * 1024 * 1024

  /// Opens the ledger at `path`. Without `anchor`, an older copy cannot be detected.
  package init(path: String, limits: LedgerLimits, anchor: LedgerAnchor? = nil) throws(LedgerError) {
    let state: LedgerState
    let tables: LedgerTables
    do throws(DatabaseError) {
      let database = try Database(
        path: path, applicationID: LedgerTables.applicationID, schema: LedgerTables.schema, creation: .never,
        check: .sparing(table: "audit", above: Self.checkedByteCount), busyTimeoutMilliseconds: 5000)
      tables = LedgerTables(database: database)
      state = try tables.state()
    } catch { throw .database(error) }
    (self.limits, self.anchor) = (limits, anchor)
    (deviceID, tpm) = (state.deviceID, state.tpm)
    unsafe self.tables = tables
    try anchor?.takeTurn { () throws(LedgerError) in _ = try newestState() }
  }

  /// Makes the ledger of a new device at `path`, where no file may exist. The clock floor starts at `realClock`, in Unix
  /// seconds. An anchored ledger begins at the `epoch` of its counter in `tpm`.
  package static func create(
    path: String, deviceID: DeviceID, realClock: UInt64, epoch: UInt64? = nil, tpm: String? = nil
  ) throws(DatabaseError) {
    let database = try Database(path: path, applicationID: LedgerTables.applicationID, schema: LedgerTables.schema)
    guard database.isNew else { throw .misuse }
    let tables = LedgerTables(database: database)
    try database.transaction { () throws(DatabaseError) in
      var state = LedgerState(deviceID: deviceID, clockFloor: realClock)
      (state.epoch, state.tpm) = (epoch, tpm)
      try tables.append(.created(deviceID), time: realClock, to: &state)
      try tables.insert(state)
    }
    try database.checkpoint()
    try database.close()
  }

  /// Calls `body` with the tables, for reading.
  package func read<Result: Sendable & ~Copyable>(
    _ body: (borrowing LedgerTables) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try lock.withLock { _ throws(DatabaseError) in try body(unsafe tables) }
  }

  /// Runs `body` in a transaction on the state, which is written back unless `body` throws.
  ///
  /// If the ledger is anchored, this throws also when the counter could not be raised. The transaction is then durable, but
  /// nothing may be acted upon.
  ///
  /// If `isKept` returns false for the result, everything is rolled back: nothing is synchronised, and no counter is raised.
  package func write<Result: Sendable>(
    isKept: (Result) -> Bool = { _ in true },
    _ body: (borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Result
  ) throws(LedgerError) -> Result {
    try lock.withLock { _ throws(LedgerError) in
      guard let anchor else { return try commit(isKept, body).result }
      return try anchor.takeTurn { () throws(LedgerError) in
        if !anchor.hasCounted(try state().epoch) { try anchor.count(commit({ _ in true }, { (_, _) in }).epoch) }
        let (result, epoch) = try commit(isKept, body)
        if isKept(result) { try anchor.count(epoch) }
        return result
      }
    }
  }

  /// Runs the transaction. Also returns the epoch that is to be counted now, for an anchored ledger.
  private func commit<Result>(
    _ isKept: (Result) -> Bool,
    _ body: (borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Result
  ) throws(LedgerError) -> (result: Result, epoch: UInt64?) {
    let tables = unsafe tables
    let outcomes = running.outcomes
    func isWritten(_ written: (result: Result, epoch: UInt64?)) -> Bool { isKept(written.result) }
    let written = try tables.database.transaction(mapping: LedgerError.database, isKept: isWritten) {
      () throws(LedgerError) in
      var state = try newestState()
      do throws(DatabaseError) {
        for (request, outcome) in outcomes { try tables.keep(outcome, of: request) }
        if anchor != nil { state.epoch = state.epoch.map { $0 + 1 } }
        let result = try body(tables, &state)
        try tables.save(state)
        return (result, state.epoch)
      } catch { throw .database(error) }
    }
    if isWritten(written) { running.remove(outcomes) }
    return written
  }

  /// Returns the state, after checking it against the counter of an anchored ledger. Call it within a turn.
  private func newestState() throws(LedgerError) -> LedgerState {
    let state = try state()
    try anchor?.catchUp(with: state)
    return state
  }

  private func state() throws(LedgerError) -> LedgerState {
    do throws(DatabaseError) { return try unsafe tables.state() } catch { throw .database(error) }
  }

  /// Records one event in the audit log.
  package func record(_ event: AuditEvent, realClock: UInt64?) throws(LedgerError) {
    try write { (tables, state) throws(DatabaseError) in
      try tables.append(event, time: state.time(realClock: realClock), to: &state)
    }
  }

  /// The most entries that the audit log keeps, according to the policy; nil for no limit. Beyond it, the oldest are dropped.
  package var auditBound: UInt64? {
    get { unsafe tables.auditBound.count }
    set { unsafe tables.auditBound.count = newValue }
  }

  /// Returns the number of audit entries and their bound if the oldest ones are about to be dropped, once.
  package func takeAuditNotice() -> (kept: UInt64, bound: UInt64)? { unsafe tables.auditBound.takeNotice() }

  /// Moves SQLite's write-ahead log into the file.
  package func checkpoint() throws(LedgerError) {
    do throws(DatabaseError) {
      try read { (tables) throws(DatabaseError) in try tables.database.checkpoint() }
    } catch { throw .database(error) }
  }
}

extension LedgerFault {
  package init(_ error: DatabaseError) {
    self =
      switch error {
      case .busy: .busy
      case .readOnly: .readOnly
      case .corrupt, .wrongType: .damaged
      default: .failed
      }
  }
}

/// The only row of the ledger's state, which every decision reads and writes.
package struct LedgerState: Sendable, Equatable {
  /// The id of the device whose ledger this is.
  var deviceID: DeviceID
  /// The clock floor, in Unix seconds. Only the owner lowers it.
  var clockFloor: UInt64
  /// The highest clock floor before the owner lowered it, in Unix seconds. The uses and nonces of tokens that expired by then
  /// may have been dropped, so they count as used up.
  var forgottenThrough: UInt64 = 0
  /// The number of the server's starts.
  var bootCount: UInt64 = 0
  /// The number of use counts and nonces in the ledger.
  var keptCount: UInt64 = 0
  /// The number of tokens whose request numbers are in the ledger.
  var requestCount: UInt64 = 0
  var audit = AuditChain()
  /// The chain up to the newest audit entry that was cut off.
  var auditBase = AuditChain()
  var policySeen = PolicySeen.none
  /// The value of the anchored ledger's counter once this state is the newest; nil without an anchor.
  package var epoch: UInt64?
  /// The path of the TPM that an anchored ledger was made with.
  var tpm: String?

  /// Returns the device's time: the later of the clock floor and the real clock, in Unix seconds.
  func time(realClock: UInt64?) -> UInt64 {
    max(clockFloor, realClock ?? 0)
  }
}

/// The policy that the audit log recorded last.
enum PolicySeen: Sendable, Equatable {
  /// No policy was recorded so far.
  case none
  /// The policy file could not be used.
  case unusable
  /// The policy file with this SHA-256.
  case file(Digest)
}

/// The limits of a ledger's size.
package struct LedgerLimits: Sendable {
  /// The most use counts and compatibility nonces together. Nonces take at most half of them.
  package var keptCount: UInt64
  /// The most tokens whose request numbers are kept.
  package var requestCount: UInt64
  /// The most compatibility nonces of one token.
  package var nonceQuota: UInt64
  /// The most trusted issuers.
  package var issuerCount: UInt64
  /// The most users.
  package var userCount: UInt64
  /// The most outdated records of each kind that one round drops, so that no round takes long.
  package var dropCount: UInt64

  /// Makes the limits.
  package init(
    keptCount: UInt64 = UInt64(Limit.kept.linux), nonceQuota: UInt64 = UInt64(Limit.nonces.linux),
    requestCount: UInt64 = UInt64(Limit.requests.linux), issuerCount: UInt64 = UInt64(Limit.issuers.linux),
    userCount: UInt64 = UInt64(Limit.users.linux), dropCount: UInt64 = 64
  ) {
    (self.keptCount, self.nonceQuota, self.requestCount) = (keptCount, nonceQuota, requestCount)
    (self.issuerCount, self.userCount, self.dropCount) = (issuerCount, userCount, dropCount)
  }
}

/// The reason that a ledger could not be opened or written.
package enum LedgerError: Error, Equatable {
  case database(DatabaseError)
  /// The ledger is not the newest one, according to the counter that anchors it.
  case rolledBack
  /// The ledger is that of another device than its counter.
  case otherDevice
  /// The counter that anchors the ledger could not be used.
  case counter(CounterFault)
}

extension LedgerFault {
  package init(_ error: LedgerError) {
    self =
      switch error {
      case .database(let error): LedgerFault(error)
      case .rolledBack: .rolledBack
      case .otherDevice: .failed
      case .counter(let fault): .counter(fault)
      }
  }
}

extension DeviceFolderFault {
  init(_ error: LedgerError) {
    self =
      switch error {
      case .database(let error): .file(.ledger, .database(error))
      case .rolledBack: .file(.ledger, .rolledBack)
      case .otherDevice: .file(.ledger, .otherDevice)
      case .counter(let fault): .counter(fault)
      }
  }
}
