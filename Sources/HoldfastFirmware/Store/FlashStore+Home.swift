import HoldfastCore

/// The home of the audit log: pages for it, and what it has acknowledged.
///
/// Source: docs/couriers.md, The audit log goes home.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// The most bytes of audit entries that the journal keeps for their home when it moves. There is always room for the other records.
  package static var auditByteLimit: Int { 20_480 }
  /// The length of the longest text of a page, in bytes.
  private static var pageByteCount: Int { 1024 }
  /// The length of the end of a page's text, at most: the number of the last entry, and a hash.
  private static var pageEndByteCount: Int { 9 + 34 }
  /// The most entries of a page, so that their number is one byte.
  private static var pageEntryCount: UInt8 { 23 }

  /// Returns the number of bytes that an item takes as a transaction.
  static func transactionByteCount(_ itemByteCount: Int) -> Int { (itemByteCount + 11) & ~3 }

  /// Whether no round may be accepted, because the log is full of entries that its home has not acknowledged. A part of the room is left
  /// to entries about the owner, users and bulletins. Provers, strangers and starts make none until there is room again.
  var isAuditLogFull: Bool {
    keeping == .refuse && auditByteCount >= Self.auditByteLimit - Self.auditByteLimit / 16
  }

  /// Writes the text of a page of the audit log, at most 1,024 bytes. Source: docs/couriers.md.
  ///
  /// - Parameters:
  ///   - from: the number of the first entry. 0 stands for the entry that follows the previous page, whichever prover took that, or, if
  ///     the previous page reached the end of the log, for the first entry that the home has not acknowledged.
  ///   - text: the buffer for the text.
  /// - Returns: the home's public key for agreement; nil if the log stays at the device.
  /// - Throws: `DeviceFault.store` if the store has failed, or the journal cannot be read.
  @inline(never)
  public mutating func writeAuditPage(
    from: UInt64, into text: inout SealedReplyBuffer
  ) throws(DeviceFault) -> P256Point? {
    // A move of the journal that has failed leaves a slot that is not in force, and begins where entries are not cut off yet.
    guard !isFailed else { throw .store }
    guard let point = ProvisionedHome.agreementKey(in: Provision.home(in: journal.bytes)) else { return nil }
    let first = from == 0 ? max(acknowledged + 1, nextPageEntry) : from
    var (cut, last, countPlace) = (audit.count, UInt64(0), 0)
    var entryCount: UInt8 = 0
    do throws(StoreFault) {
      var walk = AuditWalk(journal.cursor)
      while let item = try walk.next(in: journal, using: &cryptography) {
        cut = min(cut, walk.before.count)
        guard walk.chain.count >= first else { continue }
        let entry = journal.bytes.extracting(item.lowerBound + 2..<item.upperBound)
        do throws(EncodingFault) {
          if countPlace == 0 {
            // Entries that were cut off are not there any more.
            guard from == 0 || walk.chain.count == from else { return nil }
            try text.appendAuditPage(cut: cut, after: walk.before)
            countPlace = text.count
            try text.append(0)
          }
          guard entryCount < Self.pageEntryCount,
            text.count + entry.count <= Self.pageByteCount - Self.pageEndByteCount
          else { break }
          try text.append(entry)
        } catch { throw .full }
        entryCount += 1
        last = walk.chain.count
      }
      guard entryCount > 0 else { return nil }
      do throws(EncodingFault) {
        var bytes = text.mutableBytes
        // The head of an array of fewer than 24.
        bytes[countPlace] = 0x80 + entryCount
        try audit.encode(into: &text)
        try text.appendZeros(-text.count & 255)
      } catch { throw .full }
    } catch { throw .store }
    nextPageEntry = last < audit.count ? last + 1 : 0
    return point
  }

  /// Returns the number of the last entry that the home has acknowledged; 0 if there is none.
  public mutating func acknowledgedAuditCount() throws(DeviceFault) -> UInt64 { acknowledged }

  /// Records durably that the home has the entries up to a number. For entries that were cut off, no receipt is needed.
  ///
  /// - Throws: `DeviceFault.store` if the journal cannot be read or written.
  @inline(never)
  public mutating func acknowledgeAudit(
    _ chain: AuditChain, by home: KeyID, realClock: UInt64?
  ) throws(DeviceFault) -> BulletinResult {
    // If the journal moves, entries go and one may come, so what is left is counted after that.
    try makeRoom(for: Draft.capacity)
    var (cut, isRight, byteCount) = (audit.count, false, 0)
    do throws(StoreFault) {
      var walk = AuditWalk(journal.cursor)
      while let item = try walk.next(in: journal, using: &cryptography) {
        cut = min(cut, walk.before.count)
        if walk.chain.count > chain.count { byteCount += Self.transactionByteCount(item.count) }
        if walk.chain == chain { isRight = true }
      }
    } catch { throw .store }
    guard chain.count > cut else { return .known }
    guard isRight else {
      if !isAuditLogFull { try note(.receiptRefused(home, count: chain.count), realClock: realClock) }
      return .refused
    }
    let rest = byteCount
    try record { (store: inout Self) throws(EncodingFault) in try store.draft.append(acknowledged: chain.count, rest) }
    return .taken
  }
}

extension ByteSink where Self: ~Copyable {
  /// Writes the item about the entries that were acknowledged.
  mutating func append(acknowledged count: UInt64, _ byteCount: Int) throws(Failure) {
    try begin(.acknowledged)
    try appendCBOR(unsigned: count)
    try appendCBOR(unsigned: UInt64(byteCount))
  }
}

/// The rule about keeping the audit log.
package enum AuditKeeping: UInt8, Sendable {
  /// The log has no home, and only the newest entries are kept.
  case newest
  /// Entries that the home has not acknowledged are kept as long as there is room for them.
  case drop
  /// The same, and once there is no room, commands are refused.
  case refuse
}
