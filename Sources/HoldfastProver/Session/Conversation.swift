import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport

/// A prover's connection to a device. Each message is received first and then answered by a session.
///
/// The session may be made after the first message, which identifies the device.
package struct Conversation: ~Copyable {
  private var carrier: Carrier
  private let cancellation: Cancellation?
  /// The cancellation's hold on the carrier, for as long as the proof runs.
  private var watch: Cancellation.Watch?
  /// The last message received.
  package private(set) var received: [UInt8] = []

  private enum Carrier {
    /// A connection that this conversation has made, and may make again.
    case link(DeviceLink, to: Endpoint)
    case channel(any MessageChannel)
  }

  /// Connects to `endpoint`. No message is sent before the device's first one.
  package init(
    at endpoint: Endpoint, timeoutMilliseconds: Int, cancellation: Cancellation? = nil
  ) throws(ProverError) {
    self.cancellation = cancellation
    let link: DeviceLink
    do throws(TransportError) {
      (link, watch) = try Self.connect(to: endpoint, timeoutMilliseconds: timeoutMilliseconds, cancellation)
    } catch { throw ProverError(error) }
    carrier = .link(link, to: endpoint)
  }

  /// Uses a channel that is already connected.
  package init(over channel: any MessageChannel, cancellation: Cancellation? = nil) {
    (carrier, self.cancellation) = (.channel(channel), cancellation)
    watch = cancellation?.end(channel)
  }

  private static func connect(
    to endpoint: Endpoint, timeoutMilliseconds: Int, _ cancellation: Cancellation?
  ) throws(TransportError) -> (DeviceLink, Cancellation.Watch?) {
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    let connection = try Connection.connect(
      to: endpoint, timeoutMilliseconds: timeoutMilliseconds, unless: try cancellation?.wakeUp())
    let watch = cancellation?.end(connection)
    return (try DeviceLink(meeting: connection, by: deadline), watch)
  }

  /// Waits for the device's next message.
  package mutating func receive(by deadline: Deadline) throws(ProverError) {
    do throws(TransportError) {
      let wholeMilliseconds = deadline.remainingMilliseconds
      switch carrier {
      case .channel(let channel): received = try channel.receive(by: deadline, wholeWithin: wholeMilliseconds).bytes
      case .link(var link, let endpoint):
        defer { carrier = .link(link, to: endpoint) }
        received = try link.receive(by: deadline, wholeWithin: wholeMilliseconds)
      }
    } catch { throw failure(error) }
  }

  func send(_ message: Span<UInt8>, by deadline: Deadline) throws(ProverError) {
    do throws(TransportError) {
      switch carrier {
      case .channel(let channel): try channel.send(message, by: deadline)
      case .link(let link, _): try link.connection.send(message, by: deadline)
      }
    } catch { throw failure(error) }
  }

  /// Returns the error for a failure of the channel. A channel that was ended on purpose may report its end in another way.
  private func failure(_ error: TransportError) -> ProverError {
    cancellation?.isCancelled == true ? .cancelled : ProverError(error)
  }

  /// Waits for the device's first message. Connects again until the deadline if the device has no room, because nothing was sent yet;
  /// for the same reason also if the radio link ends before that message, at most twice.
  ///
  /// A link whose last channel was closed ends two seconds later, and takes a channel with it that was opened in that moment.
  package mutating func receiveGreeting(by deadline: Deadline) throws(ProverError) -> DeviceGreeting {
    var lossCount = 0
    while true {
      do throws(ProverError) {
        try receive(by: deadline)
        break
      } catch {
        lossCount += 1
        guard isLoss(error), lossCount < Self.maximumLossCount, !deadline.hasPassed else { throw error }
        try connectAgain(by: deadline)
      }
    }
    var first = try greeting()
    while isOwn, case .verdict(let verdict) = first, verdict.status == .busy, !deadline.hasPassed {
      // Other provers may be waiting too, and the first to ask gets the place.
      _ = poll(nil, 0, Self.pauseMilliseconds)
      do {
        try connectAgain(by: deadline)
        try receive(by: deadline)
      } catch {
        if cancellation?.isCancelled == true { throw .cancelled }
        return first
      }
      first = try greeting()
    }
    return first
  }

  /// Replaces a connection that this conversation has made by a new one to the same endpoint.
  private mutating func connectAgain(by deadline: Deadline) throws(ProverError) {
    guard case .link(_, let endpoint) = carrier else { return }
    do throws(TransportError) {
      let (link, watch) = try Self.connect(
        to: endpoint, timeoutMilliseconds: deadline.remainingMilliseconds, cancellation)
      (carrier, self.watch) = (.link(link, to: endpoint), watch)
    } catch { throw failure(error) }
  }

  /// Whether a radio link that this conversation has made is lost.
  private func isLoss(_ error: ProverError) -> Bool {
    guard case .link(_, let endpoint) = carrier, endpoint.scheme.radio != nil, case .transport(let reason) = error
    else { return false }
    return reason == .linkLost || reason == .closed
  }

  /// The largest number of links in a row that end before the first message.
  private static let maximumLossCount = 3
  private static let pauseMilliseconds: CInt = 10

  /// Reads the first message of a connection.
  package borrowing func greeting() throws(ProverError) -> DeviceGreeting {
    do throws(ProverFault) { return try DeviceGreeting(received.span) } catch { throw .session(error) }
  }

  /// The device's time in the received message, if that is a challenge of a device with a clock.
  package var challengeClock: UInt64? {
    guard case .challenge(let challenge)? = try? greeting() else { return nil }
    return challenge.clock
  }

  /// Whether the prover made the connection, so that it ends with the proof. An app may go on using a channel.
  var isOwn: Bool { if case .link = carrier { true } else { false } }

  /// Passes the received message to the session and sends its answer.
  package mutating func answer(
    with session: inout Enrolment.Session, by deadline: Deadline
  ) throws(ProverError) -> ProverStep {
    let step: ProverStep
    let message = received
    do throws(ProverFault) { step = try session.receive(message.span) } catch { throw .session(error) }
    if case .send = step { try send(session.outgoing.bytes, by: deadline) }
    return step
  }

  /// Returns the largest packets, in bytes, in each direction; nil if the transport has no such limit.
  package func packetLimits() throws(ProverError) -> PacketLimits? {
    guard case .link(let link, _) = carrier else { return nil }
    do throws(TransportError) { return try link.connection.packetLimits() } catch { throw ProverError(error) }
  }
}
