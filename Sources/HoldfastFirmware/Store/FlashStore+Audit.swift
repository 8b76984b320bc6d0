import HoldfastCore

/// The audit entries in the journal.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Records an event that happened elsewhere, in a separate transaction. `realClock` is in Unix seconds.
  ///
  /// - Throws: `DeviceFault.store` if the event cannot be recorded.
  package mutating func note(_ event: AuditEvent, realClock: UInt64?) throws(DeviceFault) {
    try record { (store: inout Self) throws(EncodingFault) in try store.draft(event, realClock: realClock) }
  }

  #if !hasFeature(Embedded)
  /// Calls `body` with each entry in the journal, oldest first, and the audit chain up to and including it. The entry is nil
  /// if its bytes cannot be decoded.
  package mutating func forEachAuditEntry(_ body: (AuditEntry?, AuditChain) -> Void) throws(DeviceFault) {
    do throws(StoreFault) {
      try walkAudit(journal.cursor) { (store, item, chain) throws(StoreFault) in
        do throws(EncodingFault) {
          var reader = CBORReader(store.journal.bytes.extracting(item))
          guard try reader.itemKind() == .auditEntry else { return }
          let bytes = try reader.byteString()
          do throws(EncodingFault) { body(try AuditEntry(bytes), chain) } catch { body(nil, chain) }
        } catch { throw .damaged }
      }
    } catch { throw .store }
  }
  #endif

  /// Calls `body` with each audit item of a slot and the audit chain up to and including it.
  @inline(never)
  package mutating func walkAudit(
    _ cursor: JournalCursor, _ body: (inout Self, Range<Int>, AuditChain) throws(StoreFault) -> Void
  ) throws(StoreFault) {
    var cursor = cursor
    var chain = AuditChain()
    while let transaction = try cursor.next(in: journal.flash) {
      var position = transaction.lowerBound
      while position < transaction.upperBound {
        let item = try journal.itemRange(at: position)
        position = item.upperBound
        if try advance(&chain, over: item) { try body(&self, item, chain) }
      }
    }
  }

  /// Advances the chain over an item. Returns whether the item is about the audit chain.
  private mutating func advance(_ chain: inout AuditChain, over item: Range<Int>) throws(StoreFault) -> Bool {
    do throws(EncodingFault) {
      var reader = CBORReader(journal.bytes.extracting(item))
      switch try reader.itemKind() {
      case .auditBase:
        chain = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
      case .auditEntry:
        let entry = try reader.byteString()
        do throws(CryptographyFailure) { try chain.advance(over: entry, using: &cryptography) } catch {
          throw .unexpected
        }
      default: return false
      }
      return true
    } catch { throw .damaged }
  }
}

/// Counts of denied rounds that changed nothing: by token and status for at most two of these pairs, and by status for the
/// rest.
///
/// The memory of a board has room for no more. Each count stops at 65,535, which takes longer to reach than the minute after
/// which it is written.
package struct DeniedCounts {
  private struct Row {
    var verifyingKey = KeyID()
    var tokenID = TokenID()
    var status: UInt8 = 0
    var isUnsigned = false
    var count: UInt16 = 0
  }

  private var rows = InlineArray<2, Row>(repeating: Row())
  private var rest = InlineArray<24, UInt16>(repeating: 0)

  package mutating func add(_ round: borrowing AppraisalInput, _ status: Status) {
    var free: Int?
    for index in rows.indices.reversed() {
      if rows[index].count == 0 {
        free = index
      } else if rows[index].status == status.rawValue, rows[index].isUnsigned == (round.verifyingKey == nil),
        rows[index].tokenID == round.tokenID, rows[index].verifyingKey == round.verifyingKey ?? KeyID()
      {
        if rows[index].count < .max { rows[index].count += 1 }
        return
      }
    }
    guard let free else {
      let place = min(Int(status.rawValue), rest.count - 1)
      if rest[place] < .max { rest[place] += 1 }
      return
    }
    rows[free].verifyingKey = round.verifyingKey ?? KeyID()
    rows[free].isUnsigned = round.verifyingKey == nil
    rows[free].tokenID = round.tokenID
    rows[free].status = status.rawValue
    rows[free].count = 1
  }

  /// The next count to be written, those of tokens first; nil if there are none.
  package var next: DeniedRounds? {
    for index in rows.indices where rows[index].count > 0 {
      guard let status = Status(rawValue: rows[index].status) else { continue }
      return DeniedRounds(
        status: status, verifyingKey: rows[index].isUnsigned ? nil : rows[index].verifyingKey,
        tokenID: rows[index].tokenID, count: UInt64(rows[index].count))
    }
    for index in rest.indices where rest[index] > 0 {
      guard let status = Status(rawValue: UInt8(index)) else { continue }
      return DeniedRounds(status: status, verifyingKey: nil, tokenID: nil, count: UInt64(rest[index]))
    }
    return nil
  }

  /// Drops the count that ``next`` returned, once it is written.
  package mutating func dropNext() {
    for index in rows.indices where rows[index].count > 0 {
      rows[index].count = 0
      return
    }
    for index in rest.indices where rest[index] > 0 {
      rest[index] = 0
      return
    }
  }
}
