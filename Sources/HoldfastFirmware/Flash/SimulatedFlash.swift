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
