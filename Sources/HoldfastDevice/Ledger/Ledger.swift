import HoldfastCore
import HoldfastLinux
import HoldfastStorage
import Synchronization

/// A ledger of the facts that a device must never lose: trusted issuers, floors, uses, nonces, users and the audit log, in
/// `ledger.sqlite`.
///
/// All threads of a process share it; other processes may open it too. Every change is part of a transaction, which it may share with those of
/// other threads, and durable when the call returns.
package final class Ledger: Sendable {
  let limits: LedgerLimits
  /// The id of the device whose ledger this was when it was opened.
  let deviceID: DeviceID
  /// The audiences of bulletins for the device: its id, and its groups.
  let audiences: [AudienceID]
  /// The path of the TPM that anchored the ledger when it was made; nil for a ledger without an anchor.
  let tpm: String?
  package let unproved = UnauthenticatedCounter()
  let running = RunningRequests()
  let bulletinStates = BulletinStates()
  let courierCounter = CourierCounter()
  package let denied = DeniedCounter()
  private let anchor: LedgerAnchor?
  private let monitor = Monitor()
  /// The number of threads that are about to write, and wait for `monitor`.
  private let arriving = Atomic(0)
  package var arrivingCount: Int { arriving.load(ordering: .sequentiallyConsistent) }
  /// The writes that are to become durable together, while one of their threads collects them. Only the holder of `monitor` uses it.
  private nonisolated(unsafe) var group: WriteGroup?
  /// The tables, which only the holder of `monitor` uses. A `Mutex` around them would not lend them to bodies that are not
  /// `Sendable`.
  private nonisolated(unsafe) let tables: LedgerTables
  /// Not a `Mutex`, which spins, and hands itself over to threads in their order: each read of 64 provers would wait for another thread.
  private let reading = Monitor()
  /// The tables through another connection, which sees durable writes only, and which only the holder of `reading` uses.
  private nonisolated(unsafe) let durableTables: LedgerTables

  /// The length in bytes up to which opening the file checks the audit log too. Beyond it, only ``verifyAudit()`` does. The
  /// tables that decide rounds are checked each time.
  static let checkedByteCount: Int64 = 64 * 1024 * 1024

  /// Opens the ledger at `path` of a device in these groups. Without `anchor`, an older copy cannot be detected.
  package init(
    path: String, limits: LedgerLimits, anchor: LedgerAnchor? = nil, groups: [AudienceID] = []
  ) throws(LedgerError) {
    let state: LedgerState
    let (tables, durableTables): (LedgerTables, LedgerTables)
    func open(check: Database.Check) throws(DatabaseError) -> LedgerTables {
      LedgerTables(
        database: try Database(
          path: path, applicationID: LedgerTables.applicationID, schema: LedgerTables.schema, creation: .never,
          check: check, busyTimeoutMilliseconds: 5000))
    }
    do throws(DatabaseError) {
      tables = try open(check: .sparing(table: "audit", above: Self.checkedByteCount))
      durableTables = try open(check: .skipped)
      state = try tables.state()
    } catch { throw .database(error) }
    (self.limits, self.anchor) = (limits, anchor)
    (deviceID, tpm) = (state.deviceID, state.tpm)
    audiences = [AudienceID(state.deviceID.bytes)!] + groups
    unsafe (self.tables, self.durableTables) = (tables, durableTables)
    try anchor?.takeTurn { () throws(LedgerError) in _ = try newestState() }
  }

  /// Makes the ledger of a new device at `path`, where no file may exist. The clock floor starts at `realClock`, in Unix
  /// seconds. An anchored ledger begins at the `epoch` of its counter in `tpm`.
  package static func create(
    path: String, deviceID: DeviceID, realClock: UInt64, epoch: UInt64? = nil, tpm: String? = nil,
    policyKey: P256Point? = nil
  ) throws(DatabaseError) {
    let database = try Database(path: path, applicationID: LedgerTables.applicationID, schema: LedgerTables.schema)
    guard database.isNew else { throw .misuse }
    let tables = LedgerTables(database: database)
    try database.transaction { () throws(DatabaseError) in
      var state = LedgerState(deviceID: deviceID, clockFloor: realClock)
      (state.epoch, state.tpm) = (epoch, tpm)
      try tables.append(.created(deviceID), time: realClock, to: &state)
      if let policyKey { try tables.set(policyKey, time: realClock, to: &state) }
      try tables.insert(state)
    }
    try database.checkpoint()
    try database.close()
  }

  /// Calls `body` with the tables, for reading. It sees durable writes only.
  package func read<Result: Sendable & ~Copyable>(
    _ body: (borrowing LedgerTables) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result {
    let result = try monitor.withLockIfFree { () throws(DatabaseError) -> Result? in
      unsafe group == nil ? try body(unsafe tables) : nil
    }
    if let result { return result }
    return try reading.withLock { () throws(DatabaseError) in try body(unsafe durableTables) }
  }

  /// Calls `body` with the database outside of any transaction. Returns nil if that has to wait for others that write, unless
  /// `isPatient`.
  func outsideTransactions<Result>(
    isPatient: Bool, _ body: (borrowing LedgerTables) throws(DatabaseError) -> Result
  ) throws(DatabaseError) -> Result? {
    try monitor.withLock { () throws(DatabaseError) in
      while unsafe group != nil {
        guard isPatient else { return nil }
        monitor.wait()
      }
      return try body(unsafe tables)
    }
  }

  /// Runs `body` in a transaction on the state, which is written back unless `body` throws.
  ///
  /// If other threads are about to write, all of them share the transaction, so that it becomes durable once for all of them. A
  /// write that throws or is not kept undoes only itself. But every write of a group returns when the group is durable, because it
  /// may rest on the others, and throws if that failed.
  ///
  /// If the ledger is anchored, this throws also when the counter could not be raised. The transaction is then durable, but
  /// nothing may be acted upon.
  ///
  /// If `isKept` returns false for the result, the write is undone. If the first write of a group is undone, the group ends: nothing is
  /// synchronised, and no counter is raised.
  package func write<Value: Sendable>(
    isKept: (Value) -> Bool = { _ in true },
    _ body: (borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Value
  ) throws(LedgerError) -> Value {
    arriving.add(1, ordering: .sequentiallyConsistent)
    var outcome = Result<Value, LedgerError>.failure(.database(.misuse))
    let joined = monitor.withLock { () -> WriteGroup in
      arriving.subtract(1, ordering: .sequentiallyConsistent)
      if let group = unsafe group {
        outcome = add(to: group, isKept, body)
        if arrivingCount == 0 || group.fault != nil { monitor.signal() }
        return group
      }
      let group = WriteGroup()
      unsafe self.group = group
      do throws(LedgerError) {
        try inTurn { () throws(LedgerError) in
          try commit(group) { outcome = add(to: group, isKept, body) }
        }
        group.end(nil)
      } catch {
        // They may be those of bulletins that do not count after all.
        bulletinStates.removeAll()
        group.end(error)
      }
      unsafe self.group = nil
      monitor.signal()
      return group
    }
    try joined.waitForEnd()
    return try outcome.get()
  }

  /// Runs `body` in a turn of the anchor, if there is one, and counts the epoch that `body` returns.
  private func inTurn(_ body: () throws(LedgerError) -> UInt64?) throws(LedgerError) {
    guard let anchor else {
      _ = try body()
      return
    }
    try anchor.takeTurn { () throws(LedgerError) in
      if !anchor.hasCounted(try state().epoch) {
        let group = WriteGroup()
        let epoch = try commit(group, isAlone: true) { _ = add(to: group, { _ in true }, { (_, _) in }) }
        try anchor.count(epoch)
      }
      if let epoch = try body() { try anchor.count(epoch) }
    }
  }

  /// Runs the transaction of a group, which `first` begins. Returns the epoch that is to be counted now, for an anchored ledger in which
  /// anything changed.
  private func commit(
    _ group: WriteGroup, isAlone: Bool = false, _ first: () -> Void
  ) throws(LedgerError) -> UInt64? {
    let tables = unsafe tables
    var outcomes: [RequestIdentity: Status] = [:]
    let isWritten = try tables.database.transaction(mapping: LedgerError.database, isKept: \.self) {
      () throws(LedgerError) in
      _ = try newestState()
      first()
      guard group.state != nil else { return false }
      while !isAlone, group.fault == nil, arrivingCount > 0 { monitor.wait() }
      if let fault = group.fault { throw .database(fault) }
      outcomes = running.outcomes
      do throws(DatabaseError) {
        for (request, outcome) in outcomes { try tables.keep(outcome, of: request) }
      } catch { throw .database(error) }
      return true
    }
    guard isWritten, let state = group.state else { return nil }
    running.remove(outcomes)
    tables.auditKeeping.note(kept: state.audit.count - state.auditBase.count)
    return state.epoch
  }

  /// Adds a write to the transaction of a group.
  private func add<Value>(
    to group: WriteGroup, _ isKept: (Value) -> Bool,
    _ body: (borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Value
  ) -> Result<Value, LedgerError> {
    let tables = unsafe tables
    var changed: LedgerState?
    func change() throws(DatabaseError) -> Value {
      var state = try tables.state()
      // Once for the group: its transaction raises the counter once.
      if anchor != nil, group.state == nil { state.epoch = state.epoch.map { $0 + 1 } }
      let value = try body(tables, &state)
      guard isKept(value) else { return value }
      try tables.save(state)
      changed = state
      return value
    }
    do throws(DatabaseError) {
      // The first write is undone with the whole transaction, which ends then.
      let value = group.state == nil ? try change() : try tables.database.part(isKept: isKept, change)
      if let changed { group.state = changed }
      return .success(value)
    } catch {
      if tables.database.isRolledBack { group.fault = error }
      return .failure(.database(error))
    }
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

  /// The policy's rules about keeping the audit log. Beyond its bound, the oldest entries are dropped.
  package var auditRules: AuditRules {
    get { unsafe tables.auditKeeping.rules }
    set { unsafe tables.auditKeeping.rules = newValue }
  }

  /// Returns the number of audit entries and their bound if the oldest ones are about to be dropped, once.
  package func takeAuditNotice() -> (kept: UInt64, bound: UInt64)? { unsafe tables.auditKeeping.takeNotice() }

  /// Moves SQLite's write-ahead log into the file.
  package func checkpoint() throws(LedgerError) {
    do throws(DatabaseError) {
      _ = try outsideTransactions(isPatient: true) { (tables) throws(DatabaseError) in
        try tables.database.checkpoint()
      }
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
  package var clockFloor: UInt64
  /// The highest clock floor before the owner lowered it, in Unix seconds. The uses and nonces of tokens that expired by then
  /// may have been dropped, so they count as used up.
  var forgottenThrough: UInt64 = 0
  /// The number of the server's starts.
  var bootCount: UInt64 = 0
  /// The number of use counts and nonces in the ledger.
  package var keptCount: UInt64 = 0
  /// The number of tokens whose request numbers are in the ledger.
  var requestCount: UInt64 = 0
  /// The chain of the audit log.
  package var audit = AuditChain()
  /// The chain up to the newest audit entry that was cut off.
  var auditBase = AuditChain()
  /// The number of the last audit entry that the log's home has acknowledged; 0 if there is none.
  var acknowledged: UInt64 = 0
  var policySeen = PolicySeen.none
  /// The number of bulletins that were taken since the device was made. Without any, no round looks for what they say.
  package var bulletinCount: UInt64 = 0
  /// The value of the anchored ledger's counter once this state is the newest; nil without an anchor.
  package var epoch: UInt64?
  /// The path of the TPM that an anchored ledger was made with.
  var tpm: String?

  /// Makes the state of a new device, whose clock floor is in Unix seconds.
  package init(deviceID: DeviceID, clockFloor: UInt64) {
    (self.deviceID, self.clockFloor) = (deviceID, clockFloor)
  }

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
  /// The most revoked tokens of all issuers.
  package var revocationCount: UInt64
  /// The most users.
  package var userCount: UInt64
  /// The most outdated records of each kind that one round drops, so that no round takes long.
  package var dropCount: UInt64

  /// Makes the limits.
  package init(
    keptCount: UInt64 = UInt64(Limit.kept.linux), nonceQuota: UInt64 = UInt64(Limit.nonces.linux),
    requestCount: UInt64 = UInt64(Limit.requests.linux), issuerCount: UInt64 = UInt64(Limit.issuers.linux),
    userCount: UInt64 = UInt64(Limit.users.linux), revocationCount: UInt64 = UInt64(Limit.revocations.linux),
    dropCount: UInt64 = 64
  ) {
    (self.keptCount, self.nonceQuota, self.requestCount) = (keptCount, nonceQuota, requestCount)
    (self.issuerCount, self.userCount, self.dropCount) = (issuerCount, userCount, dropCount)
    self.revocationCount = revocationCount
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
