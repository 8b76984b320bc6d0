import CBoard

/// NOR flash, modelled in the board's PSRAM, which QEMU keeps in the image's file: what is programmed is in the file at
/// once, and killing QEMU is a power cut.
///
/// Programming clears bits, erasing a page sets them. Behind the flash there is a simulated fuse: a word `n` other than 0
/// lets the power fail after `n` more words are programmed or erased.
public struct SimulatedFlash: ~Copyable {
  /// How many bytes are erased at once.
  public static var pageByteCount: Int { 4096 }
  /// How many bytes there are.
  public static var byteCount: Int { 32 * pageByteCount }

  private static let base: UInt = 0x2100_0000
  private static let fuse: UInt = 0x2110_0000
  private static let blown: UInt32 = 0xFFFF_FFFF

  /// There is one flash on the board: make this once.
  public init() {}

  /// The little-endian word at `offset`, a multiple of 4.
  public func word(at offset: Int) -> UInt32 {
    precondition(Self.holdsWord(at: offset))
    return board_load(Self.base + UInt(offset))
  }

  /// The bytes in `range`, where they are.
  @_lifetime(borrow self)
  public func bytes(in range: Range<Int>) -> Span<UInt8> {
    precondition(range.lowerBound >= 0 && range.upperBound <= Self.byteCount)
    let start = unsafe UnsafePointer<UInt8>(bitPattern: Self.base + UInt(range.lowerBound))
    let span = unsafe Span(_unsafeStart: start!, count: range.count)
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// Programs the word at `offset`. Throws where it would have to set a bit, and at an offset that is no word's; nothing is
  /// changed then.
  public mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    guard Self.holdsWord(at: offset), self.word(at: offset) & word == word else { throw FlashFailure() }
    write(word, at: offset)
  }

  /// Erases the page at `offset`, word by word, from the first on. Throws at an offset where no page begins.
  public mutating func erasePage(at offset: Int) throws(FlashFailure) {
    guard Self.holdsWord(at: offset), offset % Self.pageByteCount == 0 else { throw FlashFailure() }
    for word in stride(from: offset, to: offset + Self.pageByteCount, by: 4) { write(0xFFFF_FFFF, at: word) }
  }

  private static func holdsWord(at offset: Int) -> Bool {
    offset >= 0 && offset < byteCount && offset % 4 == 0
  }

  private mutating func write(_ word: UInt32, at offset: Int) {
    board_store(Self.base + UInt(offset), word)
    let left = board_load(Self.fuse)
    guard left != 0 && left != Self.blown else { return }
    board_store(Self.fuse, left == 1 ? Self.blown : left - 1)
    if left == 1 { stop() }
  }
}

/// The flash cannot do that: opaque on purpose.
public struct FlashFailure: Error {
  public init() {}
}
