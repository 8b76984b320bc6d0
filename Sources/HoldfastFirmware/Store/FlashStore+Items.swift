import HoldfastCore

/// Writing items into a transaction, and finding them again.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// One entry a transaction at most: it takes the next number. It is dated by the clock floor, or by `realClock` if that is later.
  mutating func draft(_ event: AuditEvent, realClock: UInt64? = nil) throws(EncodingFault) {
    try draft.begin(.auditEntry, elementCount: 2)
    let start = draft.count
    try AuditEntry(sequence: audit.count + 1, time: time(realClock), event: event).encode(into: &draft)
    try draft.wrapCBOR(from: start)
  }

  /// The device's time: the later of floor and real clock, in Unix seconds.
  func time(_ realClock: UInt64?) -> UInt64 {
    max(state.clockFloor, realClock ?? 0)
  }

  /// Takes note of the items of a transaction.
  mutating func absorb(_ transaction: Range<Int>) throws(StoreFault) {
    var position = transaction.lowerBound
    while position < transaction.upperBound {
      let place = UInt16(position - journal.slot)
      do throws(EncodingFault) {
        position += try journal.item(place).count
        try absorb(place)
      } catch { throw .damaged }
    }
  }

  private mutating func absorb(_ place: UInt16) throws(EncodingFault) {
    var reader = CBORReader(try journal.item(place))
    switch try reader.itemKind() {
    case .state:
      state = try StoreState(&reader)
    case .auditBase:
      audit = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
    case .auditEntry:
      let entry = try reader.byteString()
      let (sequence, time) = try AuditEntry.head(of: entry)
      // A number that is left out: a transaction that counted no longer does.
      guard sequence == audit.count + 1 else { throw .unexpected }
      newestEntryTime = time
      do throws(CryptographyFailure) {
        try audit.advance(over: entry, using: &cryptography)
      } catch { throw .unexpected }
    case .generation: try putGeneration(place, of: try reader.fixedBytes())
    case .uses, .nonce: try put(place, try KeptItem(try journal.item(place)))
    case .user: try putUser(place, id: try reader.unsigned())
    case .secret: try putSecret(place, of: try reader.unsigned(), try reader.purpose())
    case .userGone: index.users[try userIndex(id: try reader.unsigned())] = UserPlace()
    case .code: index.codes[try freeCodeIndex()] = place
    case .request:
      let _: TokenID = try reader.fixedBytes()
      let position = try reader.requestPlace()
      (index.requests[position], index.outcomes[position]) = (place, nil)
    case .outcome: index.outcomes[try reader.requestPlace()] = try reader.outcome()
    case .codeGone: index.codes[try codeIndex(id: try reader.unsigned())] = 0
    }
  }
}
