import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// The front end of a device behind a serial line. It carries messages between the line and one prover at a time, and reads
/// nothing of them except their length and their status.
///
/// One thread for each endpoint accepts provers, and one thread carries messages. ``run()`` blocks; ``stop()`` ends it from
/// any other thread.
///
/// Source: docs/protocol.md, "A device behind a serial line".
package final class Bridge: Sendable {
  /// The number of provers that may wait briefly until they are refused.
  private static let waitingCount = 16

  let hardware: Endpoint
  let timing: BridgeTiming
  let notify: @Sendable (BridgeNotice) -> Void
  let reception: AcceptLoop
  let place: ProverSlot
  let stopFlag: WakeUp
  /// The open line, which is closed together with the bridge.
  let line: Mutex<Connection?>

  /// Opens the line and begins to listen. Provers wait until ``run()``.
  ///
  /// - Parameters:
  ///   - endpoints: the addresses at which provers connect.
  ///   - listeners: sources of provers that listen already. There is at least one endpoint or listener.
  ///   - hardware: a terminal, or a stream socket in the file system.
  ///   - notify: called from any thread; it must not block for long.
  /// - Throws: `hardware` if the line cannot be opened, and `server` with `endpoint` or `noDescriptors`.
  package init(
    endpoints: [Endpoint], listeners: [any ChannelListener] = [], hardware: Endpoint,
    timing: BridgeTiming = BridgeTiming(),
    notify: @escaping @Sendable (BridgeNotice) -> Void = { _ in }
  ) throws(BridgeFault) {
    guard let stopFlag = try? WakeUp() else { throw .server(.noDescriptors) }
    let line: Connection
    do throws(TransportError) {
      line = try Bridge.open(hardware, timing)
      place = try ProverSlot(provingMilliseconds: timing.provingMilliseconds)
    } catch { throw .hardware(hardware, error) }
    self.line = Mutex(line)
    do throws(ServerFault) {
      reception = try AcceptLoop(at: endpoints, waitingCount: Bridge.waitingCount, and: listeners)
    } catch { throw .server(error) }
    (self.hardware, self.timing, self.notify, self.stopFlag) = (hardware, timing, notify, stopFlag)
  }

  /// The addresses at which provers connect. A Bluetooth port that was left open is filled in.
  package var endpoints: [Endpoint] { reception.endpoints }

  /// Carries messages until ``stop()``, then ends every connection. Call it only once.
  ///
  /// - Throws: `server` if an endpoint is lost. Everything else is ended before that.
  package func run() throws(BridgeFault) {
    guard let carriers = WorkerGate(limit: 1), carriers.enter() else { throw .server(.noDescriptors) }
    let isStarted = Thread.detach { [self] in
      defer { carriers.leave() }
      var carrier = BridgeLoop(of: self)
      carrier.run()
    }
    guard isStarted else { throw .server(.noDescriptors) }
    reception.run(
      admit: { if let connection = $0 as? Connection { self.admit(connection) } },
      report: { self.notify(.acceptFault($0)) })
    stop()
    carriers.closeAndWait()
    if let fault = reception.fault { throw .server(fault) }
  }

  /// Ends ``run()``. It may be called from any thread, any number of times, also before ``run()``.
  package func stop() {
    stopFlag.raise()
    reception.stop()
    place.close()
    line.withLock { $0?.shutdown() }
  }

  /// Closes the line: a terminal or an emulator takes one connection at a time.
  func closeLine() { line.withLock { $0 = nil } }

  /// Opens the line again.
  ///
  /// - Throws: a `TransportError` if that fails.
  func openLine() throws(TransportError) -> Connection {
    let opened = try Bridge.open(hardware, timing)
    line.withLock { $0 = opened }
    if stopFlag.isRaised { opened.shutdown() }
    return opened
  }

  private static func open(_ hardware: Endpoint, _ timing: BridgeTiming) throws(TransportError) -> Connection {
    try Connection.connect(
      to: hardware, timeoutMilliseconds: timing.openMilliseconds, silenceMilliseconds: timing.silenceMilliseconds)
  }

  /// Returns the standing of a Bluetooth host's Low Energy connections. An ``Advertisement`` asks for it before it ends a
  /// link that keeps other hosts out.
  ///
  /// - Parameters:
  ///   - host: the address of the host's adapter.
  package func standing(of host: BluetoothAddress) -> LinkStanding { place.standing(of: host) }

  /// Gives a prover the place, or refuses it. The refusal is dropped if the prover's socket does not take it at once.
  private func admit(_ prover: Connection) {
    switch place.take(prover) {
    case .admitted, .ignored: return
    case .inPlaceOfUnserved: break
    case .refused: Bridge.refuse(prover, .busy, milliseconds: 0)
    }
    notify(.busy)
  }

  /// Sends an unsealed status, if the prover takes it within that time.
  static func refuse(_ prover: Connection, _ status: Status, milliseconds: Int) {
    let message = refusal(status)
    try? prover.send(message.span, timeoutMilliseconds: milliseconds)
  }

  static func refusal(_ status: Status) -> [UInt8] {
    var message: [UInt8] = []
    VerdictMessage.encode(unsealed: status, into: &message)
    return message
  }
}

/// The reason that a bridge could not start, or stopped unexpectedly.
package enum BridgeFault: Error, Equatable {
  /// An endpoint for provers failed, or the process has no descriptors left.
  case server(ServerFault)
  /// The line could not be opened.
  case hardware(Endpoint, TransportError)
}

/// The timeouts of a bridge, in milliseconds.
package struct BridgeTiming: Sendable {
  /// The timeout for the first byte of a prover's message.
  package var answerMilliseconds: Int
  /// The timeout from the first byte of a prover's message to its last.
  package var messageMilliseconds: Int
  /// The timeout for the hardware's answer to an empty frame. After it, the bridge sends a second one; if that is not
  /// answered in time either, the line is lost.
  package var freshMilliseconds: Int
  /// The timeout for further answers of a hardware that was asked more than once.
  package var settlingMilliseconds: Int
  /// The timeout for the hardware's answer to a message: a command may wait for its turn at an actuator, and then for the actuator.
  package var judgingMilliseconds: Int
  /// The timeout from the first byte of a hardware message to its last.
  package var frameMilliseconds: Int
  /// The silence that a terminal must keep, after bytes that are no message, before the bridge reads it again.
  package var silenceMilliseconds: Int
  /// The timeout for either end to take a message.
  package var sendMilliseconds: Int
  /// The timeout for a socket of the hardware to accept a connection.
  package var openMilliseconds: Int
  /// The interval between two attempts to open the line.
  package var retryMilliseconds: Int
  /// The time that a prover has to read the last message before its connection is closed, where closing could discard it.
  package var farewellMilliseconds: Int
  /// The time that a new prover has to get a message accepted before a newcomer may take its place.
  package var provingMilliseconds: Int

  /// Makes the timeouts, in milliseconds.
  package init(
    answerMilliseconds: Int = Limit.answer.linux, messageMilliseconds: Int = Limit.wholeMessage.linux,
    freshMilliseconds: Int = DeviceLink.answerMilliseconds, settlingMilliseconds: Int = DeviceLink.lateMilliseconds,
    judgingMilliseconds: Int = ExternalActuator.turnMilliseconds + ExternalActuator.timeoutRange.upperBound + 2000,
    frameMilliseconds: Int = 2000, silenceMilliseconds: Int = Connection.defaultSilenceMilliseconds,
    sendMilliseconds: Int = 10_000, openMilliseconds: Int = 1000, retryMilliseconds: Int = 1000,
    farewellMilliseconds: Int = 1000, provingMilliseconds: Int = 2000
  ) {
    self.answerMilliseconds = answerMilliseconds
    self.messageMilliseconds = messageMilliseconds
    self.freshMilliseconds = freshMilliseconds
    self.settlingMilliseconds = settlingMilliseconds
    self.judgingMilliseconds = judgingMilliseconds
    self.frameMilliseconds = frameMilliseconds
    self.silenceMilliseconds = silenceMilliseconds
    self.sendMilliseconds = sendMilliseconds
    self.openMilliseconds = openMilliseconds
    self.retryMilliseconds = retryMilliseconds
    self.farewellMilliseconds = farewellMilliseconds
    self.provingMilliseconds = provingMilliseconds
  }
}

/// An event for the operator of a bridge. It may come from any thread.
package enum BridgeNotice: Sendable, Equatable {
  /// A prover got the place. `connection` counts provers from 1. `peer` is nil if the transport does not know it.
  case connected(connection: UInt64, Peer?)
  /// A prover disconnected. `messageCount` messages from the hardware were passed on to it.
  case disconnected(connection: UInt64, messageCount: UInt64)
  /// The bridge ended a prover's connection.
  case refused(connection: UInt64, Status)
  /// A prover's connection was ended for a newcomer, because none of its messages had been accepted in time.
  case displaced(connection: UInt64)
  /// A prover was refused, because another one has the place.
  case busy
  /// The line cannot be used. The bridge opens it again.
  case hardwareLost(HardwareFault)
  /// A line that was lost is open again.
  case hardwareBack
  /// A prover could not be accepted. The bridge tries again.
  case acceptFault(TransportError)
}

/// The reason that a line cannot be used.
package enum HardwareFault: Error, Equatable {
  /// The line could not be opened, was closed, or sent something that is not a message.
  case transport(TransportError)
  /// An empty frame or a prover's message was not answered in time.
  case silent
}
