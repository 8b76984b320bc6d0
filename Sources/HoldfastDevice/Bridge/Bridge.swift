import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import Synchronization

/// The front end of a device behind a serial line: it carries messages between one prover at a time and the line, and knows
/// nothing of them but where they end (docs/protocol.md, "A device behind a serial line").
///
/// Threads: one for each endpoint accepts, and one carries. ``run()`` blocks; ``stop()`` ends it from any other thread.
package final class Bridge: Sendable {
  /// How many provers may wait for a moment until they are told that they cannot come in.
  private static let waitingCount = 16

  let hardware: Endpoint
  let timing: BridgeTiming
  let notify: @Sendable (BridgeNotice) -> Void
  let reception: Reception
  let place: ProverPlace
  let stopFlag: WakeUp
  /// The line while it is open, to be ended with the bridge.
  let line: Mutex<Connection?>

  /// Opens the line and begins to listen; provers wait until ``run()``.
  ///
  /// - Parameters:
  ///   - endpoints: where provers come, at least one.
  ///   - hardware: a terminal, or a socket of bytes in the file system.
  ///   - notify: called from any thread; it must not block for long.
  /// - Throws: `endpoint`, `noDescriptors`.
  package init(
    endpoints: [Endpoint], hardware: Endpoint, timing: BridgeTiming = BridgeTiming(),
    notify: @escaping @Sendable (BridgeNotice) -> Void = { _ in }
  ) throws(BridgeFault) {
    guard let stopFlag = try? WakeUp() else { throw .server(.noDescriptors) }
    let line: Connection
    do throws(TransportError) {
      line = try Bridge.open(hardware, timing)
      place = try ProverPlace(provingMilliseconds: timing.provingMilliseconds)
    } catch { throw .hardware(hardware, error) }
    self.line = Mutex(line)
    do throws(ServerFault) { reception = try Reception(at: endpoints, waitingCount: Bridge.waitingCount) } catch {
      throw .server(error)
    }
    (self.hardware, self.timing, self.notify, self.stopFlag) = (hardware, timing, notify, stopFlag)
  }

  /// Where provers come; a Bluetooth port that was left open is filled in.
  package var endpoints: [Endpoint] { reception.listeners.map(\.endpoint) }

  /// Carries messages until ``stop()``, then ends every connection. Once only.
  ///
  /// Throws `server` when an endpoint is gone, after everything was ended all the same.
  package func run() throws(BridgeFault) {
    guard let carriers = WorkerGate(limit: 1), carriers.enter() else { throw .server(.noDescriptors) }
    let isStarted = Thread.detach { [self] in
      defer { carriers.leave() }
      var carrier = Carrier(of: self)
      carrier.run()
    }
    guard isStarted else { throw .server(.noDescriptors) }
    reception.run(admit: { self.admit($0) }, report: { self.notify(.acceptFault($0)) })
    stop()
    carriers.closeAndWait()
    if let fault = reception.fault { throw .server(fault) }
  }

  /// Ends ``run()``: from any thread, any number of times, also before it began.
  package func stop() {
    stopFlag.raise()
    reception.stop()
    place.close()
    line.withLock { $0?.shutdown() }
  }

  /// Lets the line go: a terminal or an emulator takes one connection at a time.
  func closeLine() { line.withLock { $0 = nil } }

  /// Opens the line again.
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

  /// How far the peers of a Bluetooth host have come, those over Low Energy: what an ``Advertisement`` asks for before it ends a
  /// link that keeps others out.
  ///
  /// - Parameters:
  ///   - host: the address of the host's adapter.
  package func standing(of host: BluetoothAddress) -> LinkStanding { place.standing(of: host) }

  /// Gives a prover the place, or sends it away. What does not fit into its socket is not said.
  private func admit(_ prover: Connection) {
    switch place.take(prover) {
    case .admitted: return
    case .inPlaceOfUnserved: break
    case .refused: Bridge.refuse(prover, .busy, milliseconds: 0)
    }
    notify(.busy)
  }

  /// Answers without a seal, as far as the peer takes it.
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

/// Why a bridge could not start, or ended by itself.
package enum BridgeFault: Error, Equatable {
  /// What provers come to.
  case server(ServerFault)
  /// The line could not be opened.
  case hardware(Endpoint, TransportError)
}

/// How long a bridge waits, in milliseconds.
package struct BridgeTiming: Sendable {
  /// For the first byte of a prover's message.
  package var answerMilliseconds: Int
  /// From the first byte of a prover's message to its last.
  package var messageMilliseconds: Int
  /// For the hardware to answer an empty frame, before it gets another one; after that one, the line is lost.
  package var freshMilliseconds: Int
  /// For the hardware to answer a message.
  package var judgingMilliseconds: Int
  /// From the first byte of a message of the hardware to its last.
  package var frameMilliseconds: Int
  /// For a terminal to be silent, after bytes that are no message, before it is listened to again.
  package var silenceMilliseconds: Int
  /// For either end to take a message.
  package var sendMilliseconds: Int
  /// For a socket of the hardware to take a connection.
  package var openMilliseconds: Int
  /// Between two tries to open the line.
  package var retryMilliseconds: Int
  /// For a prover to read the last message before its connection is closed, where closing could take it back.
  package var farewellMilliseconds: Int
  /// For a new prover to have something accepted before its place may go to another one.
  package var provingMilliseconds: Int

  package init(
    answerMilliseconds: Int = 30_000, messageMilliseconds: Int = 10_000,
    freshMilliseconds: Int = DeviceLink.answerMilliseconds, judgingMilliseconds: Int = 10_000,
    frameMilliseconds: Int = 2000, silenceMilliseconds: Int = Connection.defaultSilenceMilliseconds,
    sendMilliseconds: Int = 10_000, openMilliseconds: Int = 1000, retryMilliseconds: Int = 1000,
    farewellMilliseconds: Int = 1000, provingMilliseconds: Int = 2000
  ) {
    self.answerMilliseconds = answerMilliseconds
    self.messageMilliseconds = messageMilliseconds
    self.freshMilliseconds = freshMilliseconds
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

/// Something that whoever runs a bridge may want to say. It may come from any thread.
package enum BridgeNotice: Sendable, Equatable {
  /// A prover got the place; `connection` counts them from 1. `peer` is nil where the transport does not know it.
  case connected(connection: UInt64, Peer?)
  /// A prover is gone, after so many messages from the hardware.
  case disconnected(connection: UInt64, messageCount: UInt64)
  /// The bridge ended a prover's connection.
  case refused(connection: UInt64, Status)
  /// A prover's connection ended for a newcomer: nothing of it had been accepted in time.
  case displaced(connection: UInt64)
  /// A prover was sent away: another has the place.
  case busy
  /// The line cannot be used; it is opened again.
  case hardwareLost(HardwareFault)
  /// A line that was lost is open again.
  case hardwareBack
  /// No prover could be accepted just now; it is tried again.
  case acceptFault(TransportError)
}

/// What is wrong with a line.
package enum HardwareFault: Error, Equatable {
  /// It cannot be opened, ended, or sent what is no message.
  case transport(TransportError)
  /// An empty frame, or a prover's message, was not answered in time.
  case silent
}
