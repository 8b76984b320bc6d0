/// The first eight words of a slot.
struct SlotHead {
  static let byteCount = 32
  static let completeOffset = 12
  static let supersededOffset = 16

  enum State {
    /// Blank, or being written when the power failed: the other slot holds all there is.
    case unfinished
    case current
    case superseded
    case damaged
  }

  let sequence: UInt32
  let state: State
  /// Whether nothing was ever written here.
  let isBlank: Bool

  init<Flash: FlashMemory & ~Copyable>(_ flash: borrowing Flash, at slot: Int) {
    sequence = flash.word(at: slot + 4)
    isBlank = flash.isBlank(slot..<slot + Self.byteCount)
    let isWhole = flash.word(at: slot) == Self.magic && flash.word(at: slot + 8) == Self.checksum(sequence)
    let (complete, superseded) = (
      flash.word(at: slot + Self.completeOffset), flash.word(at: slot + Self.supersededOffset)
    )
    switch (isWhole, complete, superseded) {
    case (_, .max, .max): state = .unfinished
    case (true, 0, .max): state = .current
    // Whatever else it says: it may be erased up to here.
    case (_, _, 0): state = .superseded
    default: state = .damaged
    }
  }

  static func write<Flash: FlashMemory & ~Copyable>(
    _ sequence: UInt32, into flash: inout Flash, at slot: Int
  ) throws(FlashFailure) {
    try flash.programVerified(magic, at: slot)
    try flash.programVerified(sequence, at: slot + 4)
    try flash.programVerified(checksum(sequence), at: slot + 8)
  }

  /// "HfJ1".
  private static let magic: UInt32 = 0x314a_6648

  private static func checksum(_ sequence: UInt32) -> UInt32 {
    var crc = CRC32()
    crc.append(word: magic)
    crc.append(word: sequence)
    return crc.value
  }
}
