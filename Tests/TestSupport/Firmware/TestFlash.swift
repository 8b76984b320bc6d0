import HoldfastFirmware

/// A flash in memory that outlives the devices that use it.
@safe package final class TestFlash {
  private let memory: UnsafeMutableRawBufferPointer

  /// Erased.
  package init() {
    unsafe memory = .allocate(byteCount: FlashLayout.byteCount, alignment: 4)
    unsafe memory.initializeMemory(as: UInt8.self, repeating: 0xff)
  }

  package convenience init(_ image: [UInt8]) {
    self.init()
    self.image = image
  }

  deinit {
    unsafe memory.deallocate()
  }

  /// All of it.
  package var image: [UInt8] {
    get { unsafe Array(memory) }
    set { unsafe memory.copyBytes(from: newValue) }
  }

  package subscript(offset: Int) -> UInt8 {
    get { unsafe memory[offset] }
    set { unsafe memory[offset] = newValue }
  }

  package func flip(bit: Int) {
    self[bit / 8] ^= 1 << UInt8(bit % 8)
  }

  /// Creates a flash with power for a number of words; nil for any number.
  package func powered(wordCount: Int? = nil) -> SimulatedFlash {
    var flash = unsafe SimulatedFlash(memory)
    flash.remainingWordCount = wordCount
    return flash
  }
}
