/// A NOR flash. Any byte can be read, a page can be erased to 0xFF, and an aligned 32-bit word can be programmed, which turns
/// ones into zeros.
///
/// Programming or erasing one word is atomic. The power may fail between two words.
public protocol FlashMemory: ~Copyable {
  /// The contents, at least ``FlashLayout/byteCount`` bytes.
  var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get
  }

  /// Programs a little-endian word at an offset that is a multiple of 4.
  ///
  /// - Throws: ``FlashFailure`` if a zero bit would have to become a one, or if the flash fails.
  mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure)

  /// Sets a page of ``FlashLayout/pageByteCount`` bytes to 0xFF. `offset` is a multiple of that length.
  ///
  /// - Throws: ``FlashFailure`` if the flash fails.
  mutating func erasePage(at offset: Int) throws(FlashFailure)
}

extension FlashMemory where Self: ~Copyable {
  /// Returns the little-endian word at `offset`.
  public func word(at offset: Int) -> UInt32 {
    bytes.word(at: offset)
  }

  /// Programs a word and reads it back.
  package mutating func programVerified(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    try program(word, at: offset)
    guard self.word(at: offset) == word else { throw FlashFailure() }
  }

  /// Whether every byte of `range` is erased.
  func isBlank(_ range: Range<Int>) -> Bool {
    let bytes = bytes
    for index in range where bytes[index] != 0xff { return false }
    return true
  }
}

/// An error of the flash: it refused an operation, read back another value, or has no power.
public struct FlashFailure: Error {
  /// Makes the error, which has no details.
  public init() {}
}

extension Span<UInt8> {
  /// Returns the little-endian word at `offset`.
  func word(at offset: Int) -> UInt32 {
    // Every pattern of 32 bits is a number. The place of all four bytes is checked.
    UInt32(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}

/// The layout of a device's flash: 128 KiB in pages of 4 KiB.
public enum FlashLayout {
  /// The length of a page, the unit of erasing, in bytes.
  public static let pageByteCount = 4096
  /// The length of the whole flash, in bytes.
  public static let byteCount = 32 * pageByteCount
  /// The range that the owner writes and the device only reads.
  static let provision = 0..<4 * pageByteCount
  /// The length of each journal slot, in bytes.
  package static let slotByteCount = 14 * pageByteCount
  /// The offsets of the two journal slots.
  package static let slots = (first: 4 * pageByteCount, second: 18 * pageByteCount)
}

/// A CRC-32 (reflected, polynomial 0x04C11DB7). It detects power cuts and worn cells, but not deliberate changes.
///
/// Source: IEEE 802.3 §3.2.9.
package struct CRC32 {
  private var register: UInt32 = .max

  package init() {}

  /// The register's contents for each value of four bits.
  private static let steps: InlineArray<16, UInt32> = [
    0x0000_0000, 0x1db7_1064, 0x3b6e_20c8, 0x26d9_30ac, 0x76dc_4190, 0x6b6b_51f4, 0x4db2_6158, 0x5005_713c,
    0xedb8_8320, 0xf00f_9344, 0xd6d6_a3e8, 0xcb61_b38c, 0x9b64_c2b0, 0x86d3_d2d4, 0xa00a_e278, 0xbdbd_f21c,
  ]

  /// Appends the four bytes of a little-endian word.
  package mutating func append(word: UInt32) {
    register ^= word
    for _ in 0..<8 { register = register >> 4 ^ Self.steps[Int(register & 15)] }
  }

  package var value: UInt32 { ~register }
}

/// A NOR flash in memory, whose power can be made to fail after a given number of words.
@safe public struct SimulatedFlash: ~Copyable, FlashMemory {
  private let memory: UnsafeMutableRawPointer
  /// The number of words that can still be programmed or erased; nil for no limit.
  public var remainingWordCount: Int?

  /// Uses memory as it is. The caller keeps it for as long as this value lives.
  ///
  /// - Precondition: `memory` has at least ``FlashLayout/byteCount`` bytes.
  public init(_ memory: UnsafeMutableRawBufferPointer) {
    precondition(memory.count >= FlashLayout.byteCount)
    unsafe self.memory = memory.baseAddress!
  }

  /// The contents of the memory.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get {
      // Of one length, which the compiler knows.
      let bytes = unsafe UnsafeRawBufferPointer(start: memory, count: FlashLayout.byteCount)
      return unsafe _overrideLifetime(bytes.bindMemory(to: UInt8.self).span, borrowing: self)
    }
  }

  /// Programs a word if the power has not failed.
  ///
  /// - Throws: ``FlashFailure`` for an offset that is unaligned or out of range, for a zero bit that would have to become a
  ///   one, and once ``remainingWordCount`` is used up.
  public mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    guard offset >= 0, offset % 4 == 0, offset <= FlashLayout.byteCount - 4 else { throw FlashFailure() }
    guard self.word(at: offset) & word == word else { throw FlashFailure() }
    try store(word, at: offset)
  }

  /// Erases a page, word by word, until the power fails.
  ///
  /// - Throws: ``FlashFailure`` for an offset that is unaligned or out of range, and once ``remainingWordCount`` is used up.
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
