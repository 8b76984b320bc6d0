import CBoard

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
