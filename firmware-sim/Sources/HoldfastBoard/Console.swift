import CBoard

/// The console of the firmware, on UART1. It works without a listener.
public enum Console {
  /// The number of attempts to write a byte to a full port before the byte is dropped.
  private static let patience = 100_000

  /// Enables the console.
  public static func start() {
    UART.console.start(interrupting: false)
  }

  /// Writes `text`.
  public static func write(_ text: StaticString) {
    for index in 0..<text.utf8CodeUnitCount { unsafe write(text.utf8Start[index]) }
  }

  /// Writes `number` in decimal.
  public static func write(_ number: UInt32) {
    var divisor: UInt32 = 1
    while number / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      write(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / divisor % 10))
      divisor /= 10
    }
  }

  /// Writes `word` in hexadecimal, with the prefix 0x.
  public static func write(hexadecimal word: UInt32) {
    write("0x")
    var shift: UInt32 = 32
    while shift > 0 {
      shift -= 4
      let digit = UInt8(truncatingIfNeeded: word >> shift & 0xF)
      write(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }

  private static func write(_ byte: UInt8) {
    for _ in 0..<patience where !UART.console.isFull {
      UART.console.put(byte)
      return
    }
  }
}

/// The link to the peer, UART0.
public struct PeerLink: ~Copyable {
  /// Enables the port and its interrupt.
  public init() {
    UART.peer.start(interrupting: true)
    // Interrupt 0 means that UART0 has a byte.
    board_store(0xE000_E100, 1)
  }

  /// Returns a byte that has arrived; nil if there is none.
  public mutating func receive() -> UInt8? {
    UART.peer.hasByte ? UART.peer.take() : nil
  }

  /// Sends `byte`. Returns false if the previous byte is still being sent.
  public mutating func send(_ byte: UInt8) -> Bool {
    guard !UART.peer.isFull else { return false }
    UART.peer.put(byte)
    return true
  }

  /// Sleeps until a byte arrives, or until the clock moves, which takes at most a millisecond.
  public mutating func wait() {
    board_hold_interrupts()
    // Nothing is missed between this check and the sleep: an interrupt that is held back ends the sleep too.
    if !UART.peer.hasByte { board_wait() }
    board_allow_interrupts()
  }
}

/// One of the board's serial ports: a CMSDK APB UART.
///
/// Source: Arm Cortex-M System Design Kit Technical Reference Manual §4.3.
struct UART {
  private let base: UInt

  /// The port of the peer.
  static let peer = UART(base: 0x4000_4000)
  /// The port of the console.
  static let console = UART(base: 0x4000_5000)

  private init(base: UInt) {
    self.base = base
  }

  /// Enables the port. `interrupting` makes each byte that arrives raise an interrupt, which ends a wait.
  func start(interrupting: Bool) {
    // This is the fastest rate. The emulator passes bytes on as fast as they are taken.
    board_store(base + 0x10, 16)
    board_store(base + 0x08, interrupting ? 0b1011 : 0b0011)
  }

  var hasByte: Bool { board_load(base + 0x04) & 0b10 != 0 }

  var isFull: Bool { board_load(base + 0x04) & 0b01 != 0 }

  func take() -> UInt8 {
    UInt8(truncatingIfNeeded: board_load(base))
  }

  func put(_ byte: UInt8) {
    board_store(base, UInt32(byte))
  }
}
