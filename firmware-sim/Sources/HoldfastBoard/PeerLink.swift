import CBoard

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
