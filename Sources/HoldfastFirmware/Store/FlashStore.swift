import HoldfastCore

/// What a small device keeps: a journal in flash, an index of it in memory, and the tokens that it remembers.
///
/// Whatever is written goes through ``record(_:)``, and counts from the moment at which it is read back. Where the flash fails,
/// nothing is accepted any more until the device starts again.
public struct FlashStore<Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable>: ~Copyable, DeviceStore {
  var journal: Journal<Flash>
  var cryptography: Crypto
  let issuers: ProvisionedIssuers
  var index = StoreIndex()
  var state = StoreState()
  public internal(set) var audit = AuditChain()
  private var tokens = TokenSlots()
  /// The transaction that is being made.
  var draft = ByteBuffer<1024>()
  var isFailed = false
  /// Whether the round has an audit entry of its own.
  var isSettled = false
  var unproved = UnprovedTotals()
  var requestTimes = RequestTimes()
  /// Where the request number of the round is kept, or is to be.
  var requestPlace: Int?
  var denied = DeniedCounts()
  /// When the newest audit entry was made, by the device's time, in Unix seconds.
  var newestEntryTime: UInt64 = 0
  /// The number of the request that is being carried out, where its outcome is to be kept at ``requestPlace``.
  var runningNumber: UInt64?
  /// Until when the record that is there was kept so far, in Unix seconds; 0 for none.
  var keptUntil: UInt64 = 0

  /// Reads what the journal in `flash` holds.
  public static func open(
    _ flash: consuming Flash, using cryptography: consuming Crypto
  ) throws(StoreFault) -> FlashStore {
    let journal = try Journal(opening: flash)
    var store = FlashStore(journal, cryptography)
    try store.load()
    return store
  }

  /// Begins a journal; the clock floor is in Unix seconds.
  public static func create(
    in flash: consuming Flash, clockFloor: UInt64, using cryptography: consuming Crypto
  ) throws(StoreFault) -> FlashStore {
    let journal = try Journal(creatingIn: flash)
    var store = FlashStore(journal, cryptography)
    var first = StoreState()
    first.clockFloor = clockFloor
    do throws(StoreFailure) {
      try store.record { (store: inout Self) throws(EncodingFault) in try first.encode(into: &store.draft) }
    } catch { throw .flash }
    do throws(FlashFailure) { try store.journal.finishSlot() } catch { throw .flash }
    return store
  }

  /// Knows nothing of what is in the journal until ``load()``.
  init(_ journal: consuming Journal<Flash>, _ cryptography: consuming Crypto) {
    issuers = ProvisionedIssuers(in: journal.flash)
    self.journal = journal
    self.cryptography = cryptography
  }

  /// Counts a start of the device, which makes its challenges unlike those of every start before. `realClock` is in Unix
  /// seconds.
  public mutating func start(realClock: UInt64?) throws(StoreFailure) -> UInt64 {
    var next = state
    next.bootCount += 1
    try record { (store: inout Self) throws(EncodingFault) in
      try next.encode(into: &store.draft)
      try store.draft(.started(bootCount: next.bootCount), realClock: realClock)
    }
    return next.bootCount
  }

  public mutating func trustedIssuer(_ keyID: KeyID) -> IssuerKey? { issuers.find(keyID, in: journal.bytes) }

  public mutating func beginRound() { isSettled = false }

  public mutating func clockFloor() throws(StoreFailure) -> UInt64 {
    guard !isFailed else { throw StoreFailure() }
    return state.clockFloor
  }

  /// What was written last is no later than now. That saves a device that starts again the time up to then: a lockout goes on
  /// where it was, and an owner's code begins when the owner made it.
  public mutating func knownTime() throws(StoreFailure) -> UInt64 { max(state.clockFloor, newestEntryTime) }

  /// How far ahead of the clock floor what an entry says of the time is believed at a start: 400 days, in seconds. The owner's
  /// machine may have had it wrong.
  private static var longestAdvanceSeconds: UInt64 { 34_560_000 }

  public mutating func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool {
    tokens.recall(reference, into: &token)
  }

  public mutating func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {
    tokens.remember(token, as: reference)
  }

  /// A settled round whose answer has no seal, a compatibility round's, stands in the audit log already.
  public mutating func countUnproved(_ status: Status) {
    if !isSettled { unproved[status] += 1 }
  }

  /// Drafts a transaction and appends it: all of it counts, or nothing.
  mutating func record(_ body: (inout Self) throws(EncodingFault) -> Void) throws(StoreFailure) {
    guard !isFailed else { throw StoreFailure() }
    defer { draft.removeAll() }
    do throws(EncodingFault) { try body(&self) } catch { throw StoreFailure() }
    do throws(StoreFault) {
      if journal.room < draft.count { try compact() }
      try absorb(try journal.append(draft.bytes))
    } catch {
      isFailed = true
      throw StoreFailure()
    }
  }

  /// Reads the whole slot in force. One that is complete holds something.
  mutating func load() throws(StoreFault) {
    index = StoreIndex()
    (state, audit, newestEntryTime) = (StoreState(), AuditChain(), 0)
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

/// The few numbers of which there is one.
struct StoreState {
  /// Unix seconds; it only rises.
  var clockFloor: UInt64 = 0
  /// How often the device started.
  var bootCount: UInt64 = 0
  var nextUserID: UInt64 = 1
  var nextCodeID: UInt64 = 1

  init() {}

  /// What a journal's last word on it is.
  init<Flash: FlashMemory & ~Copyable>(lastIn journal: borrowing Journal<Flash>) throws(StoreFault) {
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

  /// Reads what follows the kind.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    clockFloor = try reader.unsigned()
    bootCount = try reader.unsigned()
    nextUserID = try reader.unsigned()
    nextCodeID = try reader.unsigned()
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.begin(.state, elementCount: 5)
    try sink.appendCBOR(unsigned: clockFloor)
    try sink.appendCBOR(unsigned: bootCount)
    try sink.appendCBOR(unsigned: nextUserID)
    try sink.appendCBOR(unsigned: nextCodeID)
  }
}

/// Why a store cannot be opened.
public enum StoreFault: Error {
  /// Nothing was ever written.
  case blank
  /// It holds what was never written.
  case damaged
  /// It holds more than there is room for.
  case full
  case flash
}

/// Moving to the other slot with what still counts.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// How many of the newest audit entries go along.
  private static var keptAuditEntryCount: UInt64 { 16 }
  /// Below this much room the journal moves as soon as nobody waits, in bytes.
  private static var comfortableRoom: Int { 4096 }

  /// What is done while nobody waits, so that a round need not: where that is due, strangers' failures and denied rounds are
  /// written down, and room is made. `realClock` is in Unix seconds.
  public mutating func rest(recordsTotals: Bool, realClock: UInt64?) {
    if recordsTotals {
      do throws(StoreFailure) { try recordTotals(realClock: realClock) } catch { return }
    }
    guard !isFailed, journal.room < Self.comfortableRoom else { return }
    do throws(StoreFault) { try compact() } catch { isFailed = true }
  }

  /// A count goes from memory once it is written.
  private mutating func recordTotals(realClock: UInt64?) throws(StoreFailure) {
    if unproved.statusCount > 0 {
      let totals = unproved
      try note(.unproved(totals), realClock: realClock)
      unproved = UnprovedTotals()
    }
    while let rounds = denied.next {
      try note(.denied(rounds), realClock: realClock)
      denied.dropNext()
    }
  }

  /// Writes what counts into the other slot. Throws `full` where that leaves no room.
  mutating func compact() throws(StoreFault) {
    let old = (slot: journal.slot, cursor: journal.cursor)
    index.dropOutdated(clockFloor: state.clockFloor)
    do throws(FlashFailure) { try journal.beginSlot() } catch { throw .flash }
    try appendState()
    try copyAudit(old.cursor)
    for position in index.generations.indices { try copy(index.generations[position], from: old.slot) }
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
    do throws(EncodingFault) { try state.encode(into: &item) } catch { throw .full }
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

  /// Copies the newest entries, behind the chain up to them.
  private mutating func copyAudit(_ old: JournalCursor) throws(StoreFault) {
    let dropped = audit.count - min(audit.count, Self.keptAuditEntryCount)
    var base: AuditChain? = AuditChain()
    try walkAudit(old) { (store, item, chain) throws(StoreFault) in
      if chain.count <= dropped {
        base = chain
      } else {
        try store.appendBase(base.take())
        try store.journal.append(copyOf: item)
      }
    }
    try appendBase(base)
  }

  private mutating func appendBase(_ chain: AuditChain?) throws(StoreFault) {
    guard let chain else { return }
    var item = ByteBuffer<64>()
    do throws(EncodingFault) {
      try item.begin(.auditBase, elementCount: 3)
      try item.appendCBOR(unsigned: chain.count)
      try item.appendCBOR(bytes: chain.head.bytes)
    } catch { throw .full }
    _ = try journal.append(item.bytes)
  }
}
