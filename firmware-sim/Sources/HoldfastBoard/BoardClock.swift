import CBoard
import HoldfastCore

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
