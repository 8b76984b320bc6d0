/// NOR flash: any byte can be read, a page can be erased to 0xFF, and an aligned word of 32 bits can be programmed, which turns
/// ones into zeros.
///
/// A word is programmed or erased whole; between two words the power may fail.
public protocol FlashMemory: ~Copyable {
  /// All of it, at least ``FlashLayout/byteCount`` bytes.
  var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get
  }

  /// Programs a word, little-endian, at a multiple of 4. Throws where a bit would have to become one, and when the flash fails.
  mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure)

  /// Sets ``FlashLayout/pageByteCount`` bytes from a multiple of that on to 0xFF.
  mutating func erasePage(at offset: Int) throws(FlashFailure)
}

extension FlashMemory where Self: ~Copyable {
  /// The word at `offset`, little-endian.
  public func word(at offset: Int) -> UInt32 {
    bytes.word(at: offset)
  }

  /// Programs a word and looks whether it is there.
  mutating func programVerified(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    try program(word, at: offset)
    guard self.word(at: offset) == word else { throw FlashFailure() }
  }

  /// Whether every word of `range` is erased.
  func isBlank(_ range: Range<Int>) -> Bool {
    let bytes = bytes
    for index in range where bytes[index] != 0xff { return false }
    return true
  }
}

/// The flash did not do what it was told, or has no power.
public struct FlashFailure: Error {
  public init() {}
}

extension Span<UInt8> {
  /// Four bytes, little-endian.
  func word(at offset: Int) -> UInt32 {
    UInt32(self[offset]) | UInt32(self[offset + 1]) << 8 | UInt32(self[offset + 2]) << 16
      | UInt32(self[offset + 3]) << 24
  }
}

/// What lies where in a device's flash: 128 KiB in pages of 4 KiB.
public enum FlashLayout {
  /// The unit of erasing, in bytes.
  public static let pageByteCount = 4096
  /// All of it.
  public static let byteCount = 32 * pageByteCount
  /// What the owner writes and the device only reads.
  static let provision = 0..<4 * pageByteCount
  /// Each slot of the journal.
  static let slotByteCount = 14 * pageByteCount
  /// Where the slots begin.
  static let slots = (first: 4 * pageByteCount, second: 18 * pageByteCount)
}

/// CRC-32 as Ethernet has it (reflected, polynomial 0x04C11DB7): finds what power cuts and worn cells do, not what people do.
///
/// Source: IEEE 802.3 §3.2.9.
struct CRC32 {
  private var register: UInt32 = .max

  /// What the register holds for each value of four bits.
  private static let steps: InlineArray<16, UInt32> = [
    0x0000_0000, 0x1db7_1064, 0x3b6e_20c8, 0x26d9_30ac, 0x76dc_4190, 0x6b6b_51f4, 0x4db2_6158, 0x5005_713c,
    0xedb8_8320, 0xf00f_9344, 0xd6d6_a3e8, 0xcb61_b38c, 0x9b64_c2b0, 0x86d3_d2d4, 0xa00a_e278, 0xbdbd_f21c,
  ]

  mutating func append(_ byte: UInt8) {
    register ^= UInt32(byte)
    register = register >> 4 ^ Self.steps[Int(register & 15)]
    register = register >> 4 ^ Self.steps[Int(register & 15)]
  }

  mutating func append(word: UInt32) {
    for index: UInt32 in 0..<4 { append(UInt8(truncatingIfNeeded: word >> (8 * index))) }
  }

  var value: UInt32 { ~register }
}

/// NOR flash in memory, with a fuse: the power fails after so many words.
@safe public struct SimulatedFlash: ~Copyable, FlashMemory {
  private let memory: UnsafeMutableRawBufferPointer
  /// How many words can still be programmed or erased; nil for any number.
  public var remainingWordCount: Int?

  /// Takes memory that the caller keeps for as long as this lives, as it is.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= FlashLayout.byteCount)
    unsafe self.memory = memory
  }

  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { unsafe _overrideLifetime(UnsafeRawBufferPointer(memory).bindMemory(to: UInt8.self).span, borrowing: self) }
  }

  public mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    guard offset >= 0, offset % 4 == 0, offset <= FlashLayout.byteCount - 4 else { throw FlashFailure() }
    guard self.word(at: offset) & word == word else { throw FlashFailure() }
    try store(word, at: offset)
  }

  public mutating func erasePage(at offset: Int) throws(FlashFailure) {
    guard offset >= 0, offset % FlashLayout.pageByteCount == 0,
      offset <= FlashLayout.byteCount - FlashLayout.pageByteCount
    else { throw FlashFailure() }
    for position in stride(from: offset, to: offset + FlashLayout.pageByteCount, by: 4) {
      try store(.max, at: position)
    }
  }

  private mutating func store(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    if let remaining = remainingWordCount {
      guard remaining > 0 else { throw FlashFailure() }
      remainingWordCount = remaining - 1
    }
    unsafe memory.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt32.self)
  }
}
