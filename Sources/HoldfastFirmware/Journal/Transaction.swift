/// A transaction as it stands in flash: a head, its bytes padded to whole words, a checksum.
struct Transaction {
  private let byteCount: Int
  private let start: Int
  /// Behind the checksum.
  let end: Int

  enum State {
    case counts
    /// The power failed before it was whole.
    case neverHappened
  }

  /// Where its bytes are.
  var body: Range<Int> { start + 4..<start + 4 + byteCount }

  /// Nil for what is no head, or reaches beyond the slot.
  init?<Flash: FlashMemory & ~Copyable>(_ flash: borrowing Flash, at start: Int, in slotEnd: Int) {
    let head = flash.word(at: start)
    byteCount = Int(head & 0xffff)
    self.start = start
    end = start + 8 + (byteCount + 3) / 4 * 4
    guard head == Self.head(byteCount), end <= slotEnd else { return nil }
  }

  /// The length and its complement: no flipped bit makes another length of it.
  static func head(_ byteCount: Int) -> UInt32 {
    let length = UInt32(byteCount)
    return ~length << 16 | length
  }

  /// The last word, which is never that of erased flash.
  static func checksum(_ crc: CRC32) -> UInt32 {
    crc.value == .max ? 0 : crc.value
  }

  /// Throws `damaged` where the checksum is another one.
  func state<Flash: FlashMemory & ~Copyable>(
    _ flash: borrowing Flash, sequence: UInt32
  ) throws(StoreFault) -> State {
    let written = flash.word(at: end - 4)
    guard written != .max else { return .neverHappened }
    var crc = CRC32()
    crc.append(word: sequence)
    for position in stride(from: start, to: end - 4, by: 4) { crc.append(word: flash.word(at: position)) }
    guard written == Self.checksum(crc) else { throw .damaged }
    return .counts
  }
}
