import HoldfastCore
import HoldfastOpenSSL

/// The parts of a device on Linux.
package enum LinuxEnvironment<Keys: DeviceKeys, Random: RandomSource & Sendable, Time: Clock & Sendable>:
  DeviceEnvironment
{
  package typealias Crypto = OpenSSLCryptography
  package typealias Key = Keys.Key
  package typealias Store = SessionStore<Time>
  package typealias Rules = SessionPolicy
}

/// The device's side of one connection that you own. It does no I/O on the connection: you carry the messages.
///
/// Send ``challenge()``, pass the peer's message to ``respond(to:waitedMilliseconds:)``, send the answer, and begin again. The
/// policy is the one in force at each of the peer's messages. Only one thread at a time may use a session.
public struct VerifierSession<
  Machine: Actuator, Keys: DeviceKeys, Random: RandomSource & Sendable, Time: Clock & Sendable
>: ~Copyable {
  let device: OpenDevice<Keys, Random, Time>
  let connection: UInt64
  private let policy: SessionPolicy
  /// The moment of the last reading of the policy, in monotonic milliseconds.
  private var policyReadAt: UInt64?
  private var session: DeviceSession<LinuxEnvironment<Keys, Random, Time>>
  private var actuator: Machine

  init(
    of device: OpenDevice<Keys, Random, Time>, connection: UInt64, key: consuming Keys.Key,
    challenges: consuming ChallengeSource, transport: RoundTransport?, actuator: Machine
  ) {
    policy = SessionPolicy(ledger: device.ledger)
    let store = SessionStore(
      ledger: device.ledger, memory: device.memory, clock: device.clock, policy: policy, pages: device.pages)
    session = DeviceSession(
      deviceID: device.folder.descriptor.deviceID, keyID: device.folder.descriptor.keyID,
      cryptography: OpenSSLCryptography(), key: key, store: store, policy: policy, random: device.random,
      clock: device.clock, challenges: challenges)
    session.transport = transport
    (self.device, self.connection, self.actuator) = (device, connection, actuator)
  }

  /// Begins a round and returns its challenge (M1), which is good for one answer. The factors that it names are those of the
  /// policy at most 100 ms before.
  ///
  /// - Throws: a `DeviceFault`, which is `store` once the device is closed; the connection must then be closed.
  public mutating func challenge() throws(DeviceFault) -> [UInt8] {
    guard !device.isClosed else { throw .store }
    if !isPolicyFresh { renewPolicy() }
    try session.makeChallenge()
    return Array(copying: session.challenge.bytes)
  }

  /// Answers a message of the peer. An accepted command has been carried out by then.
  ///
  /// A message without a challenge before it, and every message once the device is closed, is refused as `challengeExpired`.
  ///
  /// - Parameters:
  ///   - message: the peer's message; one of no bytes, or of more than 4096, is malformed.
  ///   - waitedMilliseconds: the time from sending the challenge to the first byte of `message`.
  /// - Returns: the verdict to send, and what to do before and after.
  public mutating func respond(to message: Span<UInt8>, waitedMilliseconds: UInt64) -> SessionAnswer {
    let answer = judge(message, waitedMilliseconds: waitedMilliseconds)
    report(answer.outcome)
    return answer
  }

  /// Refuses a message that never came or was not whole. Returns the verdict to send.
  public mutating func refuse(_ status: Status) -> [UInt8] {
    session.refuse(status)
    device.notify(.answered(connection: connection, status))
    return Array(copying: session.outgoing.bytes)
  }

  /// Ends what earlier rounds permitted: after an empty frame, the peer may be another one.
  mutating func endPermission() {
    session.mail = MailAllowance()
    session.connectionChallenge = nil
  }

  /// Answers a message without reporting it.
  mutating func judge(_ message: Span<UInt8>, waitedMilliseconds: UInt64) -> SessionAnswer {
    if device.isClosed { session.refuse(.challengeExpired) }
    renewPolicy()
    session.store.event = nil
    if let answer = session.respondToMail(message) {
      return SessionAnswer(message: answer.message, outcome: answer.outcome)
    }
    let (notify, connection) = (device.notify, connection)
    var reporting = ReportingActuator(actuator) { notify(.commandFailed(connection: connection, command: $0, $1)) }
    let outcome = session.respond(to: message, waitedMilliseconds: waitedMilliseconds, actuator: &reporting)
    actuator = reporting.actuator
    reportUnknownCommand()
    return SessionAnswer(message: Array(copying: session.outgoing.bytes), outcome: outcome)
  }

  /// Reports a round. A compatibility round's answer has no seal, even if its peer has proved itself, but the ledger has
  /// recorded the round.
  func report(_ outcome: RoundOutcome) {
    guard !outcome.awaitsConfirmation else { return }
    let event = session.store.event
    if outcome.isMail {
      switch event {
      case .bulletinTaken(let issuer, let audience, let number)?:
        device.notify(.bulletin(connection: connection, issuer: issuer, audience: audience, number: number))
      case .receiptRefused(let home, let count)?:
        device.notify(.receiptRefused(connection: connection, home: home, count: count))
      default: break
      }
      return
    }
    let isRecordedSilently = if case .round(let round) = event { round.isCompatibility } else { false }
    if outcome.isPeerAuthenticated || isRecordedSilently {
      device.notify(.judged(JudgedRound(connection: connection, status: outcome.status, event: event)))
    } else {
      device.notify(.answered(connection: connection, outcome.status))
    }
  }

  /// Reports a refused command that the policy allows and the actuator does not carry out, so that the owner finds the mistake.
  /// The prover's user could only ask about it.
  private func reportUnknownCommand() {
    guard case .round(let round)? = session.store.event, round.status == .commandRefused,
      policy.current.rule(for: round.command) != nil,
      !UserCommandName.contains(round.command, under: DevicePolicy.self),
      !actuator.carriesOut(round.command)
    else { return }
    device.notify(.unknownToActuator(connection: connection, command: round.command))
  }

  /// Whether the policy was read less than 100 ms ago, in the answer before. That is enough for a challenge, which only says what
  /// the prover should bring along, and may wait much longer for its answer: M2 is always judged by the policy of its moment.
  private var isPolicyFresh: Bool {
    guard let policyReadAt else { return false }
    return device.clock.monotonicMilliseconds() &- policyReadAt < 100
  }

  /// Reads the policy again. A file that changes between M1 and M2 applies to M2.
  private mutating func renewPolicy() {
    let now = device.clock.unixSeconds()
    policy.current = device.watch.policy(realClock: now)
    policy.hasClock = now != nil
    policyReadAt = device.clock.monotonicMilliseconds()
  }
}

/// The answer of a ``VerifierSession`` to a message.
public struct SessionAnswer: Sendable {
  /// The verdict (M3), to be sent; empty if it could not be made.
  public let message: [UInt8]
  /// The status, and what to do: wait before sending, close afterwards, or expect a confirmation without another challenge. After mail,
  /// the last challenge is still open.
  public let outcome: RoundOutcome
}

/// An actuator that reports its failures to the operator. The prover's user could only ask about them.
struct ReportingActuator<Machine: Actuator>: Actuator {
  private(set) var actuator: Machine
  private let report: (BoundedText<32>, ActuatorFailure) -> Void

  /// Wraps `actuator`. `report` gets the command that failed.
  init(_ actuator: Machine, report: @escaping (BoundedText<32>, ActuatorFailure) -> Void) {
    (self.actuator, self.report) = (actuator, report)
  }

  func carriesOut(_ command: BoundedText<32>) -> Bool { actuator.carriesOut(command) }

  mutating func reservePlace() -> Bool { actuator.reservePlace() }

  mutating func releasePlace() { actuator.releasePlace() }

  mutating func perform(
    _ request: borrowing Request, of round: borrowing AcceptedRound, result: inout ResultBuffer
  ) throws(ActuatorFailure) {
    do throws(ActuatorFailure) { try actuator.perform(request, of: round, result: &result) } catch {
      report(request.command, error)
      throw error
    }
  }

  mutating func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    try perform(request, of: AcceptedRound(), result: &result)
  }
}

extension [UInt8] {
  /// Copies a span.
  init(copying bytes: Span<UInt8>) { self = bytes.indices.map { bytes[$0] } }
}
