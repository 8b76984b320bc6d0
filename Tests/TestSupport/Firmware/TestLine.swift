import HoldfastCore
import HoldfastFirmware

/// The other end of a device's serial line, and its clock: a script of input, and a record of output.
///
/// A step runs once the device waits for a byte and the previous step is used up. After the last step, the line ends.
package final class TestLine {
  package let clock: TestClock
  package private(set) var sent: [SentBytes] = []
  package private(set) var notices: [FirmwareNotice] = []
  package private(set) var pauses: [UInt64] = []
  /// The number of times that the device asked for a byte.
  package private(set) var receptionCount = 0
  private var steps: [(TestLine) throws -> Void] = []
  private var incoming: [(milliseconds: UInt64, byte: UInt8)] = []
  private var nextIncoming = 0
  private var quietUntil: UInt64 = 0

  package struct SentBytes {
    package let milliseconds: UInt64
    package let bytes: [UInt8]
  }

  package init(clock: TestClock) {
    self.clock = clock
  }

  package var now: UInt64 { clock.monotonicMilliseconds() }

  package func then(_ step: @escaping (TestLine) throws -> Void) {
    steps.append(step)
  }

  /// Bytes arrive after a delay, at a fixed interval.
  package func bytes(_ bytes: [UInt8], after delay: UInt64 = 0, every interval: UInt64 = 0) {
    for (index, byte) in bytes.enumerated() { incoming.append((now + delay + UInt64(index) * interval, byte)) }
  }

  /// A message arrives.
  package func message(_ message: [UInt8], after delay: UInt64 = 0, every interval: UInt64 = 0) {
    bytes([UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message, after: delay, every: interval)
  }

  /// Nothing arrives for a time.
  package func quiet(milliseconds: UInt64) {
    quietUntil = now + milliseconds
  }

  /// The messages that the device has sent so far, with the time at which each began.
  package var messages: [SentBytes] {
    var messages: [SentBytes] = []
    var head: SentBytes?
    for part in sent {
      guard let begun = head else {
        head = part
        continue
      }
      messages.append(SentBytes(milliseconds: begun.milliseconds, bytes: part.bytes))
      head = nil
    }
    return messages
  }

  package func forgetMessages() {
    sent = []
  }

  private func nextByte(until deadline: UInt64) -> ReceivedByte? {
    guard nextIncoming < incoming.count else {
      (incoming, nextIncoming) = ([], 0)
      return nil
    }
    let (milliseconds, byte) = incoming[nextIncoming]
    guard milliseconds <= deadline else { return silence(until: deadline) }
    nextIncoming += 1
    advance(to: milliseconds)
    return .byte(byte)
  }

  private func silence(until milliseconds: UInt64) -> ReceivedByte {
    advance(to: milliseconds)
    return .silence
  }

  private func advance(to milliseconds: UInt64) {
    if milliseconds > now { clock.advance(milliseconds: milliseconds - now) }
  }
}

extension TestLine: Board {
  package func receive(until deadline: UInt64) -> ReceivedByte {
    receptionCount += 1
    while true {
      if let reception = nextByte(until: deadline) { return reception }
      if quietUntil > now {
        if quietUntil >= deadline { return silence(until: deadline) }
        advance(to: quietUntil)
      }
      guard !steps.isEmpty else { return .ended }
      do { try steps.removeFirst()(self) } catch { fatalError("a step failed: \(error)") }
    }
  }

  package func send(_ bytes: Span<UInt8>) {
    sent.append(SentBytes(milliseconds: now, bytes: Array(bytes)))
  }

  /// Bytes that arrive in the meantime are lost.
  package func pause(until milliseconds: UInt64) {
    pauses.append(milliseconds - now)
    advance(to: milliseconds)
    while nextIncoming < incoming.count, incoming[nextIncoming].milliseconds < milliseconds { nextIncoming += 1 }
  }

  package func notify(_ notice: FirmwareNotice) {
    notices.append(notice)
  }
}
