import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastTransport

/// The parts of a device on Linux.
package enum LinuxEnvironment<Random: RandomSource & Sendable, Time: Clock & Sendable>: DeviceEnvironment {
  package typealias Crypto = OpenSSLCryptography
  package typealias Key = P256PrivateKey
  package typealias Store = SessionStore<Time>
  package typealias Rules = SessionPolicy
}

/// The loop that serves one peer on a separate thread, round after round.
struct ConnectionLoop<Random: RandomSource & Sendable, Time: Clock & Sendable>: ~Copyable {
  typealias Session = DeviceSession<LinuxEnvironment<Random, Time>>

  let connection: Connection
  let number: UInt64
  let timing: ServerTiming
  let clock: Time
  let watch: PolicyWatch
  let table: ConnectionTable
  let notify: @Sendable (ServerNotice) -> Void
  let policy: SessionPolicy
  var session: Session
  var actuator: LockActuator<SimulatedLock>
  /// Whether the peer's next message belongs to the round that is under way.
  private var awaitsConfirmation = false

  /// The result of waiting for M2.
  private enum Arrival {
    case message(byteCount: Int, waitedMilliseconds: UInt64)
    /// No byte came in time.
    case silence
    /// The bytes were not a whole message.
    case unusable
    /// An empty frame: the peer asks to begin again.
    case emptyFrame
    /// The peer disconnected, or the server stops.
    case ended
  }

  init(
    connection: Connection, number: UInt64, timing: ServerTiming, clock: Time, watch: PolicyWatch,
    table: ConnectionTable,
    notify: @escaping @Sendable (ServerNotice) -> Void, policy: SessionPolicy, session: consuming Session,
    actuator: LockActuator<SimulatedLock>
  ) {
    self.connection = connection
    self.number = number
    self.timing = timing
    self.clock = clock
    self.watch = watch
    self.table = table
    self.notify = notify
    self.policy = policy
    self.session = session
    self.actuator = actuator
  }

  /// Serves until the peer disconnects, sends something that is not a message, lets two challenges in a row expire, or the
  /// server stops.
  mutating func run() {
    var buffer = [UInt8](repeating: 0, count: Message.maximumByteCount)
    var silenceCount = 0
    while silenceCount < 2 {
      if !awaitsConfirmation {
        guard challenge() else { return }
      }
      awaitsConfirmation = false
      switch receive(into: &buffer) {
      case .message(let byteCount, let waitedMilliseconds):
        silenceCount = 0
        guard answer(buffer.span.extracting(0..<byteCount), waitedMilliseconds: waitedMilliseconds) else { return }
      case .silence:
        silenceCount += 1
        guard refuse(.challengeExpired) else { return }
      case .unusable:
        _ = refuse(.malformed)
        return
      case .emptyFrame:
        silenceCount = 0
        guard beginAnew() else { return }
      case .ended:
        return
      }
    }
  }

  /// Begins a round. Returns whether the connection goes on.
  private mutating func challenge() -> Bool {
    renewPolicy()
    do throws(DeviceFault) { try session.makeChallenge() } catch {
      notify(.fault(connection: number, error))
      return false
    }
    return send(session.challenge.bytes)
  }

  /// Reads the policy again. A file that changes between M1 and M2 applies to M2.
  private func renewPolicy() {
    policy.current = watch.policy(realClock: clock.unixSeconds())
  }

  private func receive(into buffer: inout [UInt8]) -> Arrival {
    let start = clock.monotonicMilliseconds()
    do throws(TransportError) {
      var span = buffer.mutableSpan
      let received = try connection.receive(
        into: &span, firstByteBy: Deadline(afterMilliseconds: timing.answerMilliseconds),
        wholeWithin: timing.messageMilliseconds)
      let sinceFirstByte = max(timing.messageMilliseconds - received.deadline.remainingMilliseconds, 0)
      let waited = clock.monotonicMilliseconds() - start
      return .message(
        byteCount: received.byteCount, waitedMilliseconds: waited - min(UInt64(sinceFirstByte), waited))
    } catch {
      switch error {
      case .timedOutWaiting: return .silence
      case .timedOutReading, .tooLong, .truncated: return .unusable
      case .emptyFrame: return .emptyFrame
      default: return .ended
      }
    }
  }

  /// Answers a message. Returns whether the connection goes on.
  private mutating func answer(_ message: Span<UInt8>, waitedMilliseconds: UInt64) -> Bool {
    renewPolicy()
    guard table.beginJudging(number) else { return false }
    var reporting = ReportingActuator(actuator) { [notify, number] in
      notify(.unknownToActuator(connection: number, command: $0))
    }
    session.store.event = nil
    let response = session.respond(to: message, waitedMilliseconds: waitedMilliseconds, actuator: &reporting)
    table.endJudging(number, acceptedBy: response.credential)
    awaitsConfirmation = response.awaitsConfirmation
    if !awaitsConfirmation { report(response) }
    let delay = min(response.delayMilliseconds, timing.greatestDelayMilliseconds)
    if delay > 0, connection.isEnded(withinMilliseconds: Int(delay)) { return false }
    return send(session.outgoing.bytes) && !response.closesConnection
  }

  /// Reports a round. A compatibility round's answer has no seal, even if its peer has proved itself, but the ledger has
  /// recorded the round.
  private func report(_ response: RoundOutcome) {
    let event = session.store.event
    let isRecordedSilently = if case .round(let round) = event { round.isCompatibility } else { false }
    if response.isPeerAuthenticated || isRecordedSilently {
      notify(.judged(JudgedRound(connection: number, status: response.status, event: event)))
    } else {
      notify(.answered(connection: number, response.status))
    }
  }

  /// Answers an empty frame with one: the messages after it are fresh. Returns whether the peer has taken it.
  private func beginAnew() -> Bool {
    do throws(TransportError) {
      try connection.sendEmptyFrame(by: Deadline(afterMilliseconds: timing.sendMilliseconds))
      return true
    } catch { return false }
  }

  private mutating func refuse(_ status: Status) -> Bool {
    session.refuse(status)
    notify(.answered(connection: number, status))
    return send(session.outgoing.bytes)
  }

  /// Sends a message. Returns whether the peer has taken it.
  private func send(_ message: Span<UInt8>) -> Bool {
    do throws(TransportError) {
      try connection.send(message, timeoutMilliseconds: timing.sendMilliseconds)
      return true
    } catch { return false }
  }
}

/// An actuator that reports commands that the policy allows and the lock does not know, so that the owner finds the mistake.
/// The prover's user could only ask about it.
struct ReportingActuator: Actuator {
  private var lock: LockActuator<SimulatedLock>
  private let report: (BoundedText<32>) -> Void

  /// Wraps `lock`. `report` gets the unknown command.
  init(_ lock: LockActuator<SimulatedLock>, report: @escaping (BoundedText<32>) -> Void) {
    (self.lock, self.report) = (lock, report)
  }

  mutating func perform(
    _ request: borrowing Request, result: inout ResultBuffer
  ) throws(ActuatorFailure) {
    do throws(ActuatorFailure) { try lock.perform(request, result: &result) } catch {
      if error.isUnknownCommand { report(request.command) }
      throw error
    }
  }
}
