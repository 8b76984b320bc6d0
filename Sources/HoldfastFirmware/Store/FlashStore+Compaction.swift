import HoldfastCore

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
