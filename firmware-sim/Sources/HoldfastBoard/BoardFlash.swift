import CBoard
import HoldfastCore
import HoldfastFirmware

/// A NOR flash, modelled in the board's PSRAM. QEMU keeps the PSRAM in the image's file: a programmed word is in the file at
/// once, and killing QEMU is a power cut.
///
/// A simulated fuse is in the PSRAM after the flash: a word `n` other than 0 makes the power fail after `n` more words are
/// programmed or erased.
public struct BoardFlash: ~Copyable, FlashMemory {
  private var model: SimulatedFlash

  private static let base: UInt = 0x2100_0000
  private static let fuse: UInt = 0x2110_0000
  private static let blown: UInt32 = 0xFFFF_FFFF

  /// Makes the flash. The board has only one, so call this once.
  public init() {
    let memory = unsafe UnsafeMutableRawBufferPointer(
      start: UnsafeMutableRawPointer(bitPattern: Self.base), count: FlashLayout.byteCount)
    model = unsafe SimulatedFlash(memory)
  }

  /// The contents of the flash.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { model.bytes }
  }

  /// Programs a little-endian word at an offset that is a multiple of 4, and burns the fuse.
  ///
  /// - Throws: ``FlashFailure`` for an invalid offset, or if a zero bit would have to become a one.
  public mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    guard board_load(Self.fuse) == 0 else {
      return try burningFuse { (model) throws(FlashFailure) in try model.program(word, at: offset) }
    }
    try model.program(word, at: offset)
  }

  /// Erases the page at `offset`, and burns the fuse.
  ///
  /// - Throws: ``FlashFailure`` for an invalid offset.
  public mutating func erasePage(at offset: Int) throws(FlashFailure) {
    try burningFuse { (model) throws(FlashFailure) in try model.erasePage(at: offset) }
  }

  /// Changes the flash with the fuse's number of words, and writes back what is left of them.
  private mutating func burningFuse(
    _ change: (inout SimulatedFlash) throws(FlashFailure) -> Void
  ) throws(FlashFailure) {
    let left = board_load(Self.fuse)
    model.remainingWordCount = left == 0 || left == Self.blown ? nil : Int(left)
    defer {
      if let left = model.remainingWordCount {
        board_store(Self.fuse, left == 0 ? Self.blown : UInt32(left))
        if left == 0 { stop() }
      }
      model.remainingWordCount = nil
    }
    try change(&model)
  }
}

/// The clock of the board: the time since reset, by the processor's SysTick. The board has no calendar.
///
/// Source: Armv7-M Architecture Reference Manual §B3.3.
public struct BoardClock: Clock {
  /// The SysTick ticks in a millisecond: the processor runs at 25 MHz.
  private static let ticksPerMillisecond: UInt32 = 25_000

  private static let currentValue: UInt = 0xE000_E018

  /// Starts SysTick and enables interrupts.
  public init() {
    board_store(0xE000_E014, Self.ticksPerMillisecond - 1)
    board_store(Self.currentValue, 0)
    board_store(0xE000_E010, 0b111)
    board_allow_interrupts()
  }

  /// Returns nil: the board has no real clock.
  public func unixSeconds() -> UInt64? { nil }

  /// Begins the millisecond again, so that interrupts come at the same points of the same work and its ticks repeat. The
  /// clock loses less than a millisecond.
  public func beginMillisecond() {
    board_store(Self.currentValue, 0)
    // The counter reads as 0, the end of a millisecond, until it has taken its first value.
    while board_load(Self.currentValue) == 0 {}
  }

  /// Returns the milliseconds since reset.
  public func monotonicMilliseconds() -> UInt64 {
    board_milliseconds()
  }

  /// Returns the ticks since reset, of 40 ns each. A tick is 40 instructions if QEMU counts them (`-icount shift=0`).
  public func ticks() -> UInt64 {
    while true {
      let before = board_milliseconds()
      let left = board_load(Self.currentValue)
      // The reading counts only if the millisecond did not change meanwhile.
      if board_milliseconds() == before {
        return before * UInt64(Self.ticksPerMillisecond) + UInt64(Self.ticksPerMillisecond - 1 - left)
      }
    }
  }
}

/// A lock that is the board's first LED, which is on while the lock is open. Without power it is locked.
///
/// Source: Arm Application Note AN386, FPGA system control and I/O.
public struct BoardLock: Lock {
  private static let lights: UInt = 0x4002_8000

  /// Makes the lock without changing the LED.
  public init() {}

  /// The state of the lock, read from the LED.
  public var current: LockState { board_load(Self.lights) & 1 == 0 ? .locked : .unlocked }

  /// Moves the lock, and leaves the other LEDs unchanged.
  ///
  /// - Throws: `ActuatorFailure` if the LED does not show the new state.
  public mutating func move(to target: LockState) throws(ActuatorFailure) {
    let others = board_load(Self.lights) & ~1
    board_store(Self.lights, target == .locked ? others : others | 1)
    guard current == target else { throw ActuatorFailure() }
  }
}

/// The entropy of this board. It has no noise source; QEMU's loader puts 64 bytes from the host's random source into RAM. A
/// real board reads them from its noise source.
public enum SimulatedEntropy {
  /// Takes the 64 bytes and wipes them in RAM. Reports on the console whether there was any entropy: there is none if the
  /// loader brought none, and on a second call.
  public static func take() -> Secret<64> {
    let source = unsafe UnsafeMutableBufferPointer(start: board_entropy_bytes(), count: 64)
    var bytes = unsafe source.mutableSpan
    var anyBit: UInt8 = 0
    var entropy = Secret<64>()
    entropy.withMutableBytes { (copy: inout MutableSpan<UInt8>) in
      for index in bytes.indices {
        copy[index] = bytes[index]
        anyBit |= bytes[index]
      }
    }
    wipe(&bytes)
    Console.write(anyBit == 0 ? "entropy: none\n" : "entropy: simulated, 64 bytes from the host\n")
    return entropy
  }
}
