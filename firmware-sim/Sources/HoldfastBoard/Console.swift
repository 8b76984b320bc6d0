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
