import HoldfastCore

/// The store of a small device: a journal in flash, an index of it in memory, and the tokens that the device remembers.
///
/// Every write goes through ``record(_:)``, and counts from the moment at which it is read back. After a failure of the
/// flash, the store accepts nothing until the device starts again.
public struct FlashStore<Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable>: ~Copyable, DeviceStore {
  package var journal: Journal<Flash>
  package var cryptography: Crypto
  package let issuers: ProvisionedIssuers
  package var index = StoreIndex()
  package var state = StoreState()
  /// The number of audit entries so far and the head of their hash chain.
  package internal(set) var audit = AuditChain()
  private var tokens = TokenSlots()
  /// A buffer for the longest transaction that ``record(_:)`` writes.
  package typealias Draft = ByteBuffer<1024>
  /// The transaction that is being drafted.
  package var draft = Draft()
  package var isFailed = false
  package var unproved = UnauthenticatedTotals()
  package var requestTimes = RequestTimes()
  /// The place of the current round's request number; nil if it has none.
  package var requestPlace: Int?
  package var denied = DeniedCounts()
  /// The time of the newest audit entry, by the device's time, in Unix seconds.
  package var newestEntryTime: UInt64 = 0
  /// The number of the request that is being carried out, if its outcome is to be kept at ``requestPlace``.
  package var runningNumber: UInt64?
  /// The key of which the state of the bulletins is known, the state (nil for a key without bulletins), and whether it still holds.
  package var toldIssuer = KeyID()
  package var toldState: BulletinState?
  package var hasToldState = false
  package let keeping: AuditKeeping
  /// The number of the last audit entry that the log's home has acknowledged.
  package var acknowledged: UInt64 = 0
  /// The bytes that the entries after it take, each in a separate transaction.
  package var auditByteCount = 0
  /// The number of the entry after the last page; 0 if that reached the end of the log.
  var nextPageEntry: UInt64 = 0

  /// Opens the journal in `flash`, of which ``Provision`` has checked the provision, and loads it.
  ///
  /// - Throws: `blank` if there is none, `damaged` if it is invalid, `flash` if the flash fails.
  package static func open(
    _ flash: consuming Flash, using cryptography: consuming Crypto
  ) throws(StoreFault) -> FlashStore {
    let journal = try Journal(opening: flash)
    var store = FlashStore(journal, cryptography)
    try store.load()
    return store
  }

  /// Creates a journal. The clock floor is in Unix seconds.
  ///
  /// - Throws: `flash` if the flash fails.
  package static func create(
    in flash: consuming Flash, clockFloor: UInt64, using cryptography: consuming Crypto
  ) throws(StoreFault) -> FlashStore {
    let journal = try Journal(creatingIn: flash)
    var store = FlashStore(journal, cryptography)
    var first = StoreState()
    first.clockFloor = clockFloor
    do throws(DeviceFault) {
      try store.record { (store: inout Self) throws(EncodingFault) in try first.encode(into: &store.draft) }
    } catch { throw .flash }
    do throws(FlashFailure) { try store.journal.finishSlot() } catch { throw .flash }
    return store
  }

  /// Makes a store that knows nothing of the journal until ``load()``.
  package init(_ journal: consuming Journal<Flash>, _ cryptography: consuming Crypto) {
    issuers = ProvisionedIssuers(in: journal.flash)
    keeping = ProvisionedHome.keeping(in: Provision.home(in: journal.bytes))
    self.journal = journal
    self.cryptography = cryptography
  }

  /// Counts a start of the device and returns the new count, which makes the challenges differ from those of every earlier
  /// start. `realClock` is in Unix seconds.
  ///
  /// - Throws: `DeviceFault.store` if the start cannot be recorded.
  package mutating func start(realClock: UInt64?) throws(DeviceFault) -> UInt64 {
    var next = state
    next.bootCount += 1
    try record { (store: inout Self) throws(EncodingFault) in
      try next.encode(into: &store.draft)
      if !store.isAuditLogFull { try store.draft(.started(bootCount: next.bootCount), realClock: realClock) }
    }
    return next.bootCount
  }

  /// Returns the key of an issuer; nil if the device does not trust it.
  public mutating func trustedIssuer(_ keyID: KeyID) -> IssuerKey? { issuers.find(keyID, in: journal.bytes) }

  /// Returns the clock floor, in Unix seconds.
  ///
  /// - Throws: `DeviceFault.store` if the store has failed.
  public mutating func clockFloor() throws(DeviceFault) -> UInt64 {
    guard !isFailed else { throw .store }
    return state.clockFloor
  }

  /// Returns the later of the clock floor and the time of the newest audit entry, in Unix seconds: the newest entry cannot be
  /// later than now. A device without a clock therefore resumes after a restart where it was. A lockout continues, and one of
  /// the owner's codes begins when the owner made it.
  public mutating func knownTime() throws(DeviceFault) -> UInt64 { max(state.clockFloor, newestEntryTime) }

  /// The most seconds by which an audit entry's time may be ahead of the clock floor when a start trusts it: 400 days. The
  /// clock of the owner's machine may have been wrong.
  private static var longestAdvanceSeconds: UInt64 { 34_560_000 }

  /// Copies the token that is remembered under `reference` into `token`. Returns false, and changes nothing, if there is
  /// none.
  public mutating func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    tokens.recall(reference, into: &token)
  }

  /// Remembers a token in memory; with eight remembered, the oldest is dropped.
  public mutating func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
    tokens.remember(token, as: reference)
  }

  /// Counts an answer to a peer that proved nothing, in memory.
  public mutating func countUnauthenticated(_ status: Status) { unproved[status] += 1 }

  /// Drafts a transaction and appends it. All of it counts, or nothing.
  ///
  /// - Throws: `DeviceFault.store` if drafting or appending fails; after a failed append, the store has failed.
  public mutating func record(_ body: (inout Self) throws(EncodingFault) -> Void) throws(DeviceFault) {
    try makeRoom(for: Draft.capacity)
    defer { draft.removeAll() }
    do throws(EncodingFault) { try body(&self) } catch { throw .store }
    do throws(StoreFault) { try absorb(try journal.append(draft.bytes)) } catch {
      isFailed = true
      throw .store
    }
  }

  /// Moves the journal if a transaction of `byteCount` bytes would not fit. Moving it may add an audit entry, so the transaction is drafted
  /// afterwards.
  @inline(never)
  package mutating func makeRoom(for byteCount: Int) throws(DeviceFault) {
    guard !isFailed else { throw .store }
    guard journal.room < byteCount else { return }
    do throws(StoreFault) { try compact() } catch {
      isFailed = true
      throw .store
    }
  }

  /// Appends a transaction that was drafted elsewhere, after ``makeRoom(for:)``.
  package mutating func append(_ transaction: Span<UInt8>) throws(DeviceFault) {
    do throws(StoreFault) { try absorb(try journal.append(transaction)) } catch {
      isFailed = true
      throw .store
    }
  }

  /// Reads the whole slot in force, which holds at least one transaction.
  package mutating func load() throws(StoreFault) {
    index = StoreIndex()
    (state, audit, newestEntryTime) = (StoreState(), AuditChain(), 0)
    (acknowledged, auditByteCount) = (0, 0)
    var cursor = journal.cursor
    var isEmpty = true
    while let transaction = try cursor.next(in: journal.flash) {
      try absorb(transaction)
      isEmpty = false
    }
    guard !isEmpty else { throw .damaged }
    if newestEntryTime > state.clockFloor + Self.longestAdvanceSeconds { newestEntryTime = 0 }
  }
}

/// The numbers of which the store has only one each.
package struct StoreState {
  /// The clock floor, in Unix seconds. It only rises.
  package var clockFloor: UInt64 = 0
  /// The number of the device's starts.
  package var bootCount: UInt64 = 0
  package var nextUserID: UInt64 = 1
  package var nextCodeID: UInt64 = 1

  package init() {}

  /// Reads the newest state in a journal.
  package init<Flash: FlashMemory & ~Copyable>(lastIn journal: borrowing Journal<Flash>) throws(StoreFault) {
    var cursor = journal.cursor
    while let transaction = try cursor.next(in: journal.flash) {
      var position = transaction.lowerBound
      while position < transaction.upperBound {
        let item = try journal.itemRange(at: position)
        position = item.upperBound
        var reader = CBORReader(journal.bytes.extracting(item))
        do throws(EncodingFault) {
          if try reader.itemKind() == .state { self = try StoreState(&reader) }
        } catch { throw .damaged }
      }
    }
  }

  /// Reads the elements after the kind.
  package init(_ reader: inout CBORReader) throws(EncodingFault) {
    clockFloor = try reader.unsigned()
    bootCount = try reader.unsigned()
    nextUserID = try reader.unsigned()
    nextCodeID = try reader.unsigned()
  }

  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.begin(.state)
    try sink.appendCBOR(unsigned: clockFloor)
    try sink.appendCBOR(unsigned: bootCount)
    try sink.appendCBOR(unsigned: nextUserID)
    try sink.appendCBOR(unsigned: nextCodeID)
  }
}

/// The reason that a store cannot be opened.
public enum StoreFault: Error {
  /// The flash was never written.
  case blank
  /// The journal holds bytes that cannot have been written.
  case damaged
  /// The journal has no room for a transaction.
  case full
  /// The flash failed.
  case flash
}

/// Compaction: moving to the other slot the items that still count.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// The number of the newest audit entries that are kept.
  private static var keptAuditEntryCount: UInt64 { 16 }
  /// The room in bytes below which the journal is compacted as soon as no peer waits.
  private static var comfortableRoom: Int { 4096 }

  /// Does the work that a round need not wait for: records the totals of denied rounds and of peers that proved nothing, if
  /// `recordsTotals` is true and the audit log is not full, and compacts the journal if it has little room. `realClock` is in Unix seconds.
  package mutating func rest(recordsTotals: Bool, realClock: UInt64?) {
    if recordsTotals, !isAuditLogFull {
      do throws(DeviceFault) { try recordTotals(realClock: realClock) } catch { return }
    }
    guard !isFailed, journal.room < Self.comfortableRoom else { return }
    do throws(StoreFault) { try compact() } catch { isFailed = true }
  }

  /// Records the totals. Each one is dropped from memory only once it is written.
  private mutating func recordTotals(realClock: UInt64?) throws(DeviceFault) {
    if unproved.statusCount > 0 {
      let totals = unproved
      try note(.unproved(totals), realClock: realClock)
      unproved = UnauthenticatedTotals()
    }
    while let rounds = denied.next {
      try note(.denied(rounds), realClock: realClock)
      denied.dropNext()
    }
  }

  /// Writes the items that still count into the other slot.
  ///
  /// - Throws: `full` if they leave no room, `damaged` if an item cannot be read, `flash` if the flash fails.
  package mutating func compact() throws(StoreFault) {
    let old = (slot: journal.slot, cursor: journal.cursor)
    index.dropOutdated(clockFloor: state.clockFloor)
    do throws(FlashFailure) { try journal.beginSlot() } catch { throw .flash }
    try appendState()
    try moveAudit(old.cursor)
    for position in index.generations.indices { try copy(index.generations[position], from: old.slot) }
    try copy(index.revoked, from: old.slot)
    for position in index.kept.indices { try copy(index.kept[position].item, from: old.slot) }
    for position in index.requests.indices where try !isOutdatedRequest(index.requests[position], in: old.slot) {
      try copy(index.requests[position], from: old.slot)
      try appendOutcome(index.outcomes[position], of: position)
    }
    for position in index.users.indices {
      let user = index.users[position]
      try copy(user.item, from: old.slot)
      for purpose in user.secrets.indices { try copy(user.secrets[purpose], from: old.slot) }
    }
    for position in index.codes.indices { try copy(index.codes[position], from: old.slot) }
    do throws(FlashFailure) { try journal.finishSlot() } catch { throw .flash }
    let time = newestEntryTime
    try load()
    newestEntryTime = time
  }

  private mutating func appendState() throws(StoreFault) {
    var item = ByteBuffer<64>()
    do throws(EncodingFault) {
      try state.encode(into: &item)
      if acknowledged > 0 { try item.append(acknowledged: acknowledged, 0) }
    } catch { throw .full }
    _ = try journal.append(item.bytes)
  }

  private mutating func appendOutcome(_ outcome: Status?, of place: Int) throws(StoreFault) {
    guard let outcome else { return }
    var item = ByteBuffer<8>()
    do throws(EncodingFault) { try item.append(outcome, of: place) } catch { throw .full }
    _ = try journal.append(item.bytes)
  }

  private mutating func copy(_ place: UInt16, from oldSlot: Int) throws(StoreFault) {
    guard place != 0 else { return }
    try journal.append(copyOf: try journal.itemRange(at: oldSlot + Int(place)))
  }

  /// Copies the audit entries that are kept, after the head of the chain before them. Entries that their home has acknowledged go first. If
  /// others have to go as well, an entry counts them.
  private mutating func moveAudit(_ old: JournalCursor) throws(StoreFault) {
    let newest = audit.count - min(audit.count, Self.keptAuditEntryCount)
    var (excess, lost, hasBase) = (auditByteCount - Self.auditByteLimit, UInt64(0), false)
    var walk = AuditWalk(old)
    while let item = try walk.next(in: journal, using: &cryptography) {
      if !hasBase {
        let isKnown = keeping == .newest || walk.chain.count <= acknowledged
        if walk.chain.count <= newest, isKnown || excess > 0 {
          if isKnown { continue }
          excess -= Self.transactionByteCount(item.count)
          lost += 1
          continue
        }
        try appendBase(walk.before)
        hasBase = true
      }
      try journal.append(copyOf: item)
    }
    if !hasBase { try appendBase(audit) }
    guard lost > 0 else { return }
    do throws(EncodingFault) { try draft(.entriesLost(count: lost), realClock: newestEntryTime) } catch { throw .full }
    _ = try journal.append(draft.bytes)
    draft.removeAll()
  }

  private mutating func appendBase(_ chain: AuditChain) throws(StoreFault) {
    var item = ByteBuffer<64>()
    do throws(EncodingFault) {
      try item.begin(.auditBase)
      try chain.encode(into: &item)
    } catch { throw .full }
    _ = try journal.append(item.bytes)
  }
}
