import CBoard
import HoldfastCore
import HoldfastFirmware

/// NOR flash, modelled in the board's PSRAM, which QEMU keeps in the image's file: what is programmed is in the file at
/// once, and killing QEMU is a power cut.
///
/// Behind the flash there is a simulated fuse: a word `n` other than 0 lets the power fail after `n` more words are programmed
/// or erased.
public struct BoardFlash: ~Copyable, FlashMemory {
  private var model: SimulatedFlash

  private static let base: UInt = 0x2100_0000
  private static let fuse: UInt = 0x2110_0000
  private static let blown: UInt32 = 0xFFFF_FFFF

  /// There is one flash on the board: make this once.
  public init() {
    let memory = unsafe UnsafeMutableRawBufferPointer(
      start: UnsafeMutableRawPointer(bitPattern: Self.base), count: FlashLayout.byteCount)
    model = unsafe SimulatedFlash(memory)
  }

  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { model.bytes }
  }

  public mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure) {
    lookAtFuse()
    defer { burnFuse() }
    try model.program(word, at: offset)
  }

  public mutating func erasePage(at offset: Int) throws(FlashFailure) {
    lookAtFuse()
    defer { burnFuse() }
    try model.erasePage(at: offset)
  }

  private mutating func lookAtFuse() {
    let left = board_load(Self.fuse)
    model.remainingWordCount = left == 0 || left == Self.blown ? nil : Int(left)
  }

  private func burnFuse() {
    guard let left = model.remainingWordCount else { return }
    board_store(Self.fuse, left == 0 ? Self.blown : UInt32(left))
    if left == 0 { stop() }
  }
}

/// Time since reset, by the processor's SysTick. The board has no calendar.
///
/// Source: Armv7-M Architecture Reference Manual §B3.3.
public struct BoardClock: Clock {
  /// The processor runs at 25 MHz.
  private static let ticksPerMillisecond: UInt32 = 25_000

  private static let currentValue: UInt = 0xE000_E018

  /// Begins to count, and lets interrupts in.
  public init() {
    board_store(0xE000_E014, Self.ticksPerMillisecond - 1)
    board_store(Self.currentValue, 0)
    board_store(0xE000_E010, 0b111)
    board_allow_interrupts()
  }

  public func unixSeconds() -> UInt64? { nil }

  /// Begins the millisecond anew, so that interrupts come at the same places of the same work, and its ticks repeat. The clock
  /// loses less than a millisecond.
  public func beginMillisecond() {
    board_store(Self.currentValue, 0)
    // Until the counter has taken its first value it reads as 0, the end of a millisecond.
    while board_load(Self.currentValue) == 0 {}
  }

  public func monotonicMilliseconds() -> UInt64 {
    board_milliseconds()
  }

  /// Ticks of 40 ns since reset; 40 instructions each where QEMU counts them (`-icount shift=0`).
  public func ticks() -> UInt64 {
    while true {
      let before = board_milliseconds()
      let left = board_load(Self.currentValue)
      // Taken again where the millisecond has changed between the two.
      if board_milliseconds() == before {
        return before * UInt64(Self.ticksPerMillisecond) + UInt64(Self.ticksPerMillisecond - 1 - left)
      }
    }
  }
}

/// The lock: the board's first LED, which is on while it is unlocked. Without power it is locked.
///
/// Source: Arm Application Note AN386, FPGA system control and I/O.
public struct BoardLock: Lock {
  private static let lights: UInt = 0x4002_8000

  public init() {}

  public var current: LockState { board_load(Self.lights) & 1 == 0 ? .locked : .unlocked }

  public mutating func move(to target: LockState) throws(ActuatorFailure) {
    let others = board_load(Self.lights) & ~1
    board_store(Self.lights, target == .locked ? others : others | 1)
    guard current == target else { throw ActuatorFailure() }
  }
}

/// Entropy as this board has it: none of its own, but 64 bytes that QEMU's loader puts into RAM from the host's random
/// source. A real board reads them from its noise source.
public enum SimulatedEntropy {
  /// Takes the bytes, which are wiped where they were, and says on the console what they are worth: nothing where the
  /// loader brought none, and the second time.
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
