import HoldfastCore
import HoldfastStorage
import Synchronization

/// What a device must never forget: trusted issuers, floors, uses, nonces and the audit log, in `ledger.sqlite`.
///
/// Shared by all threads of a process; other processes may open it too. Whatever writes is one transaction, durable when
/// the call returns.
package final class Ledger: Sendable {
  let limits: LedgerLimits
  /// Whose ledger this was when it was opened.
  let deviceID: DeviceID
  /// The TPM that it was anchored in when it was made; nil for a ledger without an anchor.
  let tpm: String?
  let unproved = UnprovedCounter()
  let running = RunningRequests()
  let denied = DeniedCounter()
  private let anchor: LedgerAnchor?
  private let lock = Mutex(())
  /// Touched by the holder of `lock` alone. A `Mutex` around it would not lend it to bodies that are not `Sendable`.
  private nonisolated(unsafe) let tables: LedgerTables

  /// Up to this length the audit log is looked at, too, when the file is opened, in bytes; beyond it only ``verifyAudit()`` does
  /// that. All that decides is looked at each time.
  static let checkedByteCount: Int64 = 64 * 1024 * 1024

  /// Opens the ledger at `path`. Without `anchor` nothing tells whether it is the newest one.
  init(path: String, limits: LedgerLimits, anchor: LedgerAnchor? = nil) throws(LedgerError) {
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

  /// Makes the ledger of a new device at `path`, where there must be none, with the clock floor at `realClock`, in Unix
  /// seconds.
  ///
  /// An anchored one begins at the `epoch` that its counter in `tpm` has.
  static func create(
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

  /// Lends the tables to `body` for reading.
  func read<Result: Sendable & ~Copyable>(
    _ body: (borrowing LedgerTables) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    try lock.withLock { _ throws(DatabaseError) in try body(unsafe tables) }
  }

  /// Runs `body` in a transaction over the state, which is written back unless it throws.
  ///
  /// Where the ledger is anchored it throws also when the counter did not follow: what was written then stands, and nothing
  /// may be acted upon.
  ///
  /// Where `isKept` says that a result is not to be kept, everything is rolled back: nothing is synchronised, and no counter
  /// rises.
  func write<Result: Sendable>(
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

  /// Returns also the epoch of an anchored ledger that is to be counted now.
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

  /// The state, which the counter of an anchored ledger must bear out. Within a turn.
  private func newestState() throws(LedgerError) -> LedgerState {
    let state = try state()
    try anchor?.catchUp(with: state)
    return state
  }

  private func state() throws(LedgerError) -> LedgerState {
    do throws(DatabaseError) { return try unsafe tables.state() } catch { throw .database(error) }
  }

  /// Writes one event into the audit log.
  func record(_ event: AuditEvent, realClock: UInt64?) throws(LedgerError) {
    try write { (tables, state) throws(DatabaseError) in
      try tables.append(event, time: state.time(realClock: realClock), to: &state)
    }
  }

  /// How many entries the audit log may have, as policy says; nil for as many as come. Beyond them the oldest are dropped.
  var auditBound: UInt64? {
    get { unsafe tables.auditBound.count }
    set { unsafe tables.auditBound.count = newValue }
  }

  /// Moves SQLite's write-ahead log into the file.
  func checkpoint() throws(LedgerError) {
    do throws(DatabaseError) {
      try read { (tables) throws(DatabaseError) in try tables.database.checkpoint() }
    } catch { throw .database(error) }
  }
}

extension LedgerFault {
  init(_ error: DatabaseError) {
    self =
      switch error {
      case .busy: .busy
      case .corrupt, .wrongType: .damaged
      default: .failed
      }
  }
}

/// The one row of a ledger that every decision reads and writes.
struct LedgerState: Sendable, Equatable {
  /// Whose ledger this is.
  var deviceID: DeviceID
  /// Unix seconds; only the owner lowers it.
  var clockFloor: UInt64
  /// The furthest that the clock floor was before the owner lowered it, in Unix seconds: of tokens that expired until then
  /// uses and nonces may have been dropped, so that they count as used up.
  var forgottenThrough: UInt64 = 0
  /// How often the server was started.
  var bootCount: UInt64 = 0
  /// How many counted tokens and nonces are kept.
  var keptCount: UInt64 = 0
  /// How many tokens' request numbers are kept.
  var requestCount: UInt64 = 0
  var audit = AuditChain()
  /// The chain up to the newest audit entry that is no longer kept.
  var auditBase = AuditChain()
  var policySeen = PolicySeen.none
  /// How far the counter of an anchored ledger has counted once this state is the newest; nil without an anchor.
  var epoch: UInt64?
  /// The path of the TPM that an anchored ledger was made with.
  var tpm: String?

  /// The device's time: the later of floor and real clock, in Unix seconds.
  func time(realClock: UInt64?) -> UInt64 {
    max(clockFloor, realClock ?? 0)
  }
}

/// The policy that the audit log was told of last.
enum PolicySeen: Sendable, Equatable {
  /// None so far.
  case none
  /// One that could not be taken.
  case unusable
  /// SHA-256 of the file.
  case file(Digest)
}

/// How much a ledger keeps.
package struct LedgerLimits: Sendable {
  /// Counted tokens and compatibility nonces together; nonces take half of it at most.
  package var keptCount: UInt64
  /// Tokens whose request numbers are kept.
  package var requestCount: UInt64
  /// Compatibility nonces of one token.
  package var nonceQuota: UInt64
  /// Trusted issuers.
  package var issuerCount: UInt64
  /// Users.
  package var userCount: UInt64
  /// How many outdated entries of each kind one round drops at most, so that no round takes long.
  package var dropCount: UInt64

  package init(
    keptCount: UInt64 = 1_000_000, nonceQuota: UInt64 = 1024, requestCount: UInt64 = 1_000_000,
    issuerCount: UInt64 = 64, userCount: UInt64 = 100_000, dropCount: UInt64 = 64
  ) {
    (self.keptCount, self.nonceQuota, self.requestCount) = (keptCount, nonceQuota, requestCount)
    (self.issuerCount, self.userCount, self.dropCount) = (issuerCount, userCount, dropCount)
  }
}

/// Why a ledger could not be opened or written.
enum LedgerError: Error, Equatable {
  case database(DatabaseError)
  /// It is not the newest one, as the counter that anchors it tells.
  case rolledBack
  /// Its counter is another device's.
  case otherDevice
  /// The counter that anchors it could not be used.
  case counter(CounterFault)
}

extension LedgerFault {
  init(_ error: LedgerError) {
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
      case .database(let error): .file(.ledger, DeviceFileFault(error))
      case .rolledBack: .file(.ledger, .rolledBack)
      case .otherDevice: .file(.ledger, .otherDevice)
      case .counter(let fault): .counter(fault)
      }
  }
}
