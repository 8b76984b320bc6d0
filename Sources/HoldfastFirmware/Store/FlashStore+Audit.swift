import HoldfastCore

/// Walking along the audit entries that are kept.
extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Gives each entry that is kept, nil for one that is none, with the chain up to and with it.
  public mutating func forEachAuditEntry(_ body: (AuditEntry?, AuditChain) -> Void) throws(StoreFailure) {
    do throws(StoreFault) {
      try walkAudit(journal.cursor) { (store, item, chain) throws(StoreFault) in
        do throws(EncodingFault) {
          var reader = CBORReader(store.journal.bytes.extracting(item))
          guard try reader.itemKind() == .auditEntry else { return }
          let bytes = try reader.byteString()
          do throws(EncodingFault) { body(try AuditEntry(bytes), chain) } catch { body(nil, chain) }
        } catch { throw .damaged }
      }
    } catch { throw StoreFailure() }
  }

  /// Gives each audit item of a slot, with the chain up to and with it.
  @inline(never)
  mutating func walkAudit(
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

  /// Says whether the item is about the audit chain.
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
