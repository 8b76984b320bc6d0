import HoldfastBoard
import HoldfastCore
import HoldfastFirmware

/// The board as the device sees it: provers at UART0, and an observer at UART1.
struct SerialBoard: ~Copyable, Board {
  private var link = PeerLink()
  private let clock: BoardClock
  /// The time at which the current message arrived, in the clock's ticks.
  private var begun: UInt64 = 0

  /// Whether the other end did not take the last message.
  private var isStuck = false

  /// The most time that the other end may take to accept a message, in milliseconds. The rest of the message is then dropped.
  private static let sendMilliseconds: UInt64 = 10_000

  init(clock: BoardClock) {
    self.clock = clock
  }

  mutating func receive(until deadlineMilliseconds: UInt64) -> ReceivedByte {
    while true {
      if let byte = link.receive() { return .byte(byte) }
      if clock.monotonicMilliseconds() >= deadlineMilliseconds { return .silence }
      link.wait()
    }
  }

  mutating func send(_ bytes: Span<UInt8>) {
    // A stalled reader is waited for only once, and not once per queued message.
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
      Console.write(UInt32(clamping: bootCount))
    case .answering:
      clock.beginMillisecond()
      begun = clock.ticks()
      return
    case .answered(let status):
      let ticks = clock.ticks() - begun
      Console.write("holdfast: status ")
      Console.write(UInt32(status.rawValue))
      Console.write(", ticks ")
      Console.write(UInt32(clamping: ticks))
      Console.write(", stack ")
      Console.write(UInt32(MainStack.usedByteCount))
    case .fault(let fault): writeDenial(fault.text)
    case .sessionFault: writeDenial("the flash or the random source failed")
    }
    Console.write("\n")
    // This leaves no secret of the finished round in a dead stack frame.
    MainStack.wipe()
  }
}

private func writeDenial(_ reason: StaticString) {
  Console.write("holdfast: ")
  Console.write(reason)
  Console.write("; everything is denied")
}

extension FirmwareFault {
  fileprivate var text: StaticString {
    switch self {
    case .provision(.blank): "the flash is blank"
    case .provision(.foreign): "the flash is not a device's"
    case .provision(.newerVersion): "a later version provisioned the flash"
    case .provision: "the provisioned data is damaged"
    case .store(.blank): "the flash is partly provisioned"
    case .store(.flash): "the flash failed"
    case .store: "the device's memory is damaged"
    case .cryptography: "the device's key is invalid"
    }
  }
}
