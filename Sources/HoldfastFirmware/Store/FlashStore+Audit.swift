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
      var walk = AuditWalk(journal.cursor)
      while let item = try walk.next(in: journal, using: &cryptography) {
        let entry: AuditEntry?
        do throws(EncodingFault) { entry = try AuditEntry(item: journal.bytes.extracting(item)) } catch { entry = nil }
        body(entry, walk.chain)
      }
    } catch { throw .store }
  }
  #endif
}

#if !hasFeature(Embedded)
extension AuditEntry {
  fileprivate init(item: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(item)
    _ = try reader.itemKind()
    try self.init(try reader.byteString())
  }
}
#endif

/// A walk over the audit entries of a slot, oldest first.
package struct AuditWalk {
  private var cursor: JournalCursor
  /// The items of the current transaction that were not read yet.
  private var rest = 0..<0
  /// The audit chain before the last entry that was returned.
  package private(set) var before = AuditChain()
  /// The audit chain up to and including that entry.
  package private(set) var chain = AuditChain()

  /// Creates a walk from the first transaction of `cursor` on.
  package init(_ cursor: JournalCursor) { self.cursor = cursor }

  /// Returns the range of the next entry's item; nil after the last one.
  ///
  /// - Throws: `damaged` if an item cannot be read, or a hash cannot be computed.
  @inline(never)
  package mutating func next<Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable>(
    in journal: borrowing Journal<Flash>, using cryptography: inout Crypto
  ) throws(StoreFault) -> Range<Int>? {
    before = chain
    while true {
      while rest.isEmpty {
        guard let next = try cursor.next(in: journal.flash) else { return nil }
        rest = next
      }
      let item = try journal.itemRange(at: rest.lowerBound)
      // The last item of a transaction reaches to its end.
      guard item.upperBound <= rest.upperBound else { throw .damaged }
      rest = item.upperBound..<rest.upperBound
      do throws(EncodingFault) {
        var reader = CBORReader(journal.bytes.extracting(item))
        switch try reader.itemKind() {
        case .auditBase:
          chain = AuditChain(count: try reader.unsigned(), head: try reader.fixedBytes())
          before = chain
        case .auditEntry:
          let entry = try reader.byteString()
          do throws(CryptographyFailure) { try chain.advance(over: entry, using: &cryptography) } catch {
            throw .unexpected
          }
          return item
        default: break
        }
      } catch { throw .damaged }
    }
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
