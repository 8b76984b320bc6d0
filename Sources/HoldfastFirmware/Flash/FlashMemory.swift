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
