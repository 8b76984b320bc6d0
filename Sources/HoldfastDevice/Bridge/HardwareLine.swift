import HoldfastTransport

/// The bridge's end of the line, between two losses of it.
struct HardwareLine {
  private var link: DeviceLink
  private let timing: BridgeTiming
  /// Whether an empty frame was sent that was not answered yet: who comes then needs no other.
  private var isAsked = false

  /// What came on the line.
  enum Arrival {
    /// Nothing that counts: a repetition, or bytes that are dropped.
    case nothing
    /// The answer to an empty frame: a fresh challenge follows.
    case fresh
    case message([UInt8])
  }

  init(_ connection: Connection, timing: BridgeTiming) {
    link = DeviceLink(connection)
    self.timing = timing
  }

  /// Asks for a fresh challenge, unless that was done and is not answered yet.
  mutating func ask(isAgain: Bool = false) throws(HardwareFault) {
    guard !isAsked || isAgain else { return }
    do throws(TransportError) {
      try link.connection.sendEmptyFrame(by: Deadline(afterMilliseconds: timing.sendMilliseconds))
    } catch { throw .transport(error) }
    isAsked = true
  }

  mutating func send(_ message: [UInt8]) throws(HardwareFault) {
    do throws(TransportError) {
      try link.connection.send(message.span, timeoutMilliseconds: timing.sendMilliseconds)
    } catch { throw .transport(error) }
  }

  /// Takes what is there.
  mutating func take() throws(HardwareFault) -> Arrival {
    do throws(TransportError) {
      return .message(
        try link.receive(by: Deadline(afterMilliseconds: 0), wholeWithin: timing.frameMilliseconds))
    } catch {
      switch error {
      case .timedOutWaiting: return .nothing
      case .emptyFrame:
        isAsked = false
        return .fresh
      default: throw .transport(error)
      }
    }
  }

  /// Waits until something is there, or for `other`; says which.
  func wait(
    or other: Connection.Watch, until deadline: Deadline
  ) throws(HardwareFault) -> (hasArrived: Bool, other: Bool) {
    do throws(TransportError) {
      let (hasArrived, other) = try Connection.wait(for: .arrival(on: link.connection), or: other, until: deadline)
      return (hasArrived, other)
    } catch { throw .transport(error) }
  }
}
