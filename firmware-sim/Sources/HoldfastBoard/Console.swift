import CBoard

/// What the firmware says about itself, on UART1. Nobody needs to listen.
public enum Console {
  /// Looks at a full port before what is to be said is given up.
  private static let patience = 100_000

  /// Switches it on.
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

  /// Writes `word` in hexadecimal, with its 0x.
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

/// The way in, UART0: bytes from and to whoever is at the other end.
public struct PeerLink: ~Copyable {
  /// Switches it on.
  public init() {
    UART.peer.start(interrupting: true)
    // Interrupt 0: UART0 has a byte.
    board_store(0xE000_E100, 1)
  }

  /// A byte that has arrived; nil where there is none.
  public mutating func receive() -> UInt8? {
    UART.peer.hasByte ? UART.peer.take() : nil
  }

  /// Sends `byte`; false where the last one is still on its way.
  public mutating func send(_ byte: UInt8) -> Bool {
    guard !UART.peer.isFull else { return false }
    UART.peer.put(byte)
    return true
  }

  /// Sleeps until a byte is there or, a millisecond later at most, the clock has moved.
  public mutating func wait() {
    board_hold_interrupts()
    // Between this look and the sleep nothing is missed: an interrupt that is held back ends the sleep too.
    if !UART.peer.hasByte { board_wait() }
    board_allow_interrupts()
  }
}

/// One of the board's serial ports: a CMSDK APB UART.
///
/// Source: Arm Cortex-M System Design Kit Technical Reference Manual §4.3.
struct UART {
  private let base: UInt

  /// The way in.
  static let peer = UART(base: 0x4000_4000)
  /// What the firmware has to say about itself.
  static let console = UART(base: 0x4000_5000)

  private init(base: UInt) {
    self.base = base
  }

  /// Switches it on; `interrupting` where a byte that arrives ends a wait.
  func start(interrupting: Bool) {
    // The fastest rate there is: the emulator passes bytes as fast as they are taken.
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
