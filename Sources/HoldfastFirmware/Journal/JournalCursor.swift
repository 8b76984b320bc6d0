/// Walks along the transactions of a slot that count.
struct JournalCursor {
  /// Behind the last one that was looked at.
  private(set) var position: Int
  private let slotEnd: Int
  private let sequence: UInt32

  init(slot: Int, sequence: UInt32) {
    position = slot + SlotHead.byteCount
    slotEnd = slot + FlashLayout.slotByteCount
    self.sequence = sequence
  }

  /// Where the bytes of the next one are; nil behind the last. Throws `damaged` for what was never written.
  mutating func next<Flash: FlashMemory & ~Copyable>(
    in flash: borrowing Flash
  ) throws(StoreFault) -> Range<Int>? {
    while slotEnd - position >= 8, flash.word(at: position) != .max {
      guard let transaction = Transaction(flash, at: position, in: slotEnd) else { throw .damaged }
      position = transaction.end
      switch try transaction.state(flash, sequence: sequence) {
      case .counts: return transaction.body
      case .neverHappened: continue
      }
    }
    guard flash.isBlank(position..<slotEnd) else { throw .damaged }
    return nil
  }
}
