import HoldfastBoard
import HoldfastCore
import HoldfastFirmware

/// The board as the device sees it: provers at UART0, whoever watches at UART1.
struct SerialBoard: ~Copyable, Board {
  private var link = PeerLink()
  private let clock: BoardClock
  /// When the message came that is being answered, in the clock's ticks.
  private var begun: UInt64 = 0

  /// Whether the other end did not take the last message.
  private var isStuck = false

  /// How long the other end may take to accept a message, in milliseconds, before it is given up.
  private static let sendMilliseconds: UInt64 = 10_000

  init(clock: BoardClock) {
    self.clock = clock
  }

  mutating func receive(until deadlineMilliseconds: UInt64) -> Reception {
    while true {
      if let byte = link.receive() { return .byte(byte) }
      if clock.monotonicMilliseconds() >= deadlineMilliseconds { return .silence }
      link.wait()
    }
  }

  mutating func send(_ bytes: Span<UInt8>) {
    // Who takes nothing is waited for once, not for each of the messages behind.
    let deadline = clock.monotonicMilliseconds() + (isStuck ? 0 : Self.sendMilliseconds)
    for index in bytes.indices {
      while !link.send(bytes[index]) {
        isStuck = clock.monotonicMilliseconds() >= deadline
        if isStuck { return }
      }
      isStuck = false
    }
  }

  mutating func pause(until milliseconds: UInt64) {
    while clock.monotonicMilliseconds() < milliseconds { link.wait() }
  }

  mutating func notify(_ notice: FirmwareNotice) {
    switch notice {
    case .started(let bootCount):
      Console.write("holdfast: start ")
      Console.write(bootCount)
    case .answering:
      clock.beginMillisecond()
      begun = clock.ticks()
      return
    case .answered(let status):
      let ticks = clock.ticks() - begun
      Console.write("holdfast: status ")
      Console.write(UInt64(status.rawValue))
      Console.write(", ticks ")
      Console.write(ticks)
      Console.write(", stack ")
      Console.write(UInt64(MainStack.usedByteCount))
    case .fault(let fault): Console.write(fault.text)
    case .sessionFault: Console.write("holdfast: the flash or the random source failed; everything is denied")
    }
    Console.write("\n")
    // No secret of what is over is left in a dead stack frame.
    MainStack.wipe()
  }
}

extension FirmwareFault {
  fileprivate var text: StaticString {
    switch self {
    case .provision(.blank): "holdfast: the flash is blank; everything is denied"
    case .provision(.foreign): "holdfast: the flash is not a device's; everything is denied"
    case .provision(.newerVersion): "holdfast: a later version provisioned the flash; everything is denied"
    case .provision: "holdfast: what the owner provisioned is damaged; everything is denied"
    case .store(.blank): "holdfast: the flash is half provisioned; everything is denied"
    case .store(.flash): "holdfast: the flash failed; everything is denied"
    case .store: "holdfast: what the device must remember is damaged; everything is denied"
    case .cryptography: "holdfast: the device's key is none; everything is denied"
    }
  }
}
