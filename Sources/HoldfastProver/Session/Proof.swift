import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastTransport

/// The times of the parts of one proof, in nanoseconds.
public struct ProofTiming: Sendable {
  /// The time to measure the app and its host.
  public package(set) var measure: UInt64 = 0
  /// The time to connect and receive the device's challenge.
  public package(set) var connect: UInt64 = 0
  /// The time of the prover's computations in the round.
  public package(set) var round: UInt64 = 0
  /// The time until the device's verdict arrived.
  public package(set) var device: UInt64 = 0

  /// The sum of the parts.
  public var total: UInt64 { measure + connect + round + device }
}

/// The outcome of one proof.
public struct ProofOutcome: Sendable {
  /// The enrolment that was proved; nil if the device had no room and did not identify itself.
  package let enrolment: Enrolment?
  /// The device's verdict, and whether the device proved that it is the one that was enrolled.
  public let verdict: ProverOutcome
  /// The answer of the device's actuator: at most 1024 bytes; empty if the verdict is not authenticated.
  public let result: [UInt8]
  /// The times of the parts of the proof.
  public let timing: ProofTiming
  /// The number of times that the request was sent.
  public let attemptCount: Int
  /// The device's time in the challenge that the verdict answers; nil if the device has no clock. An authenticated verdict
  /// authenticates it too, because its keys depend on the challenge.
  package internal(set) var deviceClock: UInt64?
  /// The number of bulletins that the device says it has taken from this prover.
  public package(set) var deliveredBulletinCount = 0
  /// Whether the device gave a page of its audit log, for ``Prover/auditPages(of:)``.
  public package(set) var hasTakenAuditPage = false
  /// The damage to the state folder that makes the device deny the proof; nil if the enrolment is intact.
  package internal(set) var damage: StateFolderFault?
}

extension ProofOutcome {
  /// Whether the device has recorded, in this attempt or in an earlier one of the same request, that the user refused the command: the
  /// seal was the refusal. The device has proved that it says so.
  public var isRefusalRecorded: Bool {
    verdict.isAuthenticated && verdict.status == .sealRejected
      && (verdict.notice.refusal == .refusedByUser || verdict.isRepetition)
  }

  /// Whether the device had already accepted a larger number from another process with the same token.
  ///
  /// The request was sent only once, and the device states under its seal that it did not act on it. Sending it with
  /// another number therefore cannot repeat an action.
  fileprivate var isOvertaken: Bool { verdict.isRepetition && verdict.status == .internal && attemptCount == 1 }
}

/// A connection to a device that has sent its first message, and what was measured before.
struct Meeting: ~Copyable {
  let measurement: LiveMeasurement
  let greeting: DeviceGreeting
  let deadline: Deadline
  var conversation: Conversation
  var stopwatch: Stopwatch
  var timing: ProofTiming

  /// The outcome if the first message is not a challenge: that of a device without room.
  func outcome() -> ProofOutcome {
    guard case .verdict(let verdict) = greeting else { preconditionFailure("a challenge is no outcome") }
    return ProofOutcome(enrolment: nil, verdict: verdict, result: [], timing: timing, attemptCount: 0)
  }
}

/// One proof by this process over one connection, with a new measurement, to any enrolled device that answers.
package struct Proof: ~Copyable {
  let enrolments: EnrolmentChoice
  let keys: ProofKeys
  let request: Request
  let options: ProofOptions
  let host: HostSource
  let warn: (ProverWarning) -> Void

  /// Creates a proof of `request`.
  ///
  /// - Parameters:
  ///   - keys: The keys of the app's releases.
  ///   - warn: Called with what the owner should know, although the proof goes on.
  package init(
    enrolments: EnrolmentChoice, keys: ProofKeys, request: consuming Request, options: ProofOptions,
    host: HostSource = .system, warn: @escaping (ProverWarning) -> Void
  ) {
    (self.enrolments, self.keys, self.options) = (enrolments, keys, options)
    (self.host, self.warn) = (host, warn)
    self.request = request
  }

  private var termsCheck: TermsCheck { TermsCheck(folder: enrolments.folder, host: host, warn: warn) }

  /// Measures, connects, chooses the enrolment of the device that answers, and runs the session to its verdict.
  ///
  /// Records whether the device has the token now, which saves bytes the next time.
  ///
  /// - Parameter isRemembered: Whether the device already has the token; nil to look it up in the state folder, and to
  ///   record it there.
  package func run(at endpoint: Endpoint, isRemembered: Bool? = nil) throws(ProverError) -> ProofOutcome {
    try run(isRemembered) { () throws(ProverError) in try connect(to: endpoint) }
  }

  func connect(to endpoint: Endpoint) throws(ProverError) -> Conversation {
    try Conversation(
      at: endpoint, timeoutMilliseconds: options.timeoutMilliseconds, cancellation: options.cancellation)
  }

  /// The same over a channel that is already connected, and that no other proof uses.
  package func run(over channel: any MessageChannel) throws(ProverError) -> ProofOutcome {
    guard ChannelsInUse.begin(channel) else { throw .channelInUse }
    defer { ChannelsInUse.end(channel) }
    return try run(nil) { () throws(ProverError) in Conversation(over: channel, cancellation: options.cancellation) }
  }

  private func run(
    _ isRemembered: Bool?, _ connect: () throws(ProverError) -> Conversation
  ) throws(ProverError) -> ProofOutcome {
    var outcome = try roundTrip(isRemembered, connect)
    outcome.damage = outcome.enrolment.flatMap(enrolments.damage(of:))
    guard outcome.verdict.isAuthenticated, let enrolment = outcome.enrolment else { return outcome }
    if let clock = [outcome.deviceClock, outcome.verdict.notice.clock].compactMap({ $0 }).max() {
      termsCheck.learn(deviceClock: clock, of: enrolment)
    }
    guard isRemembered == nil else { return outcome }
    do throws(StateFolderFault) { try enrolments.setRemembered(enrolment) } catch { warn(.unrecordedToken(error)) }
    return outcome
  }

  private func roundTrip(
    _ isRemembered: Bool?, _ connect: () throws(ProverError) -> Conversation
  ) throws(ProverError) -> ProofOutcome {
    var meeting = try meet(connect)
    guard case .challenge(let challenge) = meeting.greeting else { return meeting.outcome() }
    let enrolment = try enrolment(for: challenge)
    var session = try session(of: enrolment, proving: meeting.measurement, isRemembered)
    var attemptCount = 0
    var overtaken: ProofOutcome?
    var renumberingCount = 0
    var deviceClock: UInt64?
    options.progress(.proving(challenge.deviceID))
    while true {
      let clock = meeting.conversation.challengeClock
      let step = try meeting.conversation.answer(with: &session, by: meeting.deadline)
      meeting.timing.round += meeting.stopwatch.lap()
      switch step {
      case .send:
        attemptCount += 1
        deviceClock = clock
        options.progress(.waiting(challenge.deviceID))
      case .awaitChallenge: break
      case .done(let verdict):
        learn(from: verdict, of: enrolment)
        var outcome = ProofOutcome(
          enrolment: enrolment, verdict: verdict, result: Array(session.reply.result.bytes), timing: meeting.timing,
          attemptCount: attemptCount)
        outcome.deviceClock = deviceClock
        guard outcome.isOvertaken, renumberingCount < Self.maximumRenumberingCount else {
          exchangeMail(after: &outcome, of: enrolment, over: &meeting.conversation)
          return outcome
        }
        session.requestNumber = try nextNumber(for: enrolment)
        overtaken = outcome
        attemptCount = 0
        renumberingCount += 1
      }
      do throws(ProverError) { try meeting.conversation.receive(by: meeting.deadline) } catch {
        if let overtaken { return overtaken }
        guard let verdict = session.verdictSoFar else { throw error }
        return ProofOutcome(
          enrolment: enrolment, verdict: verdict, result: [], timing: meeting.timing, attemptCount: attemptCount)
      }
      meeting.timing.device += meeting.stopwatch.lap()
    }
  }

  /// Exchanges mail after a command that was accepted, or refused only because the audit log is full. If that fails, the verdict stands
  /// all the same. Over a channel of the app's, there is no mail, since the app may go on with the device's next challenge.
  private func exchangeMail(
    after outcome: inout ProofOutcome, of enrolment: Enrolment, over conversation: inout Conversation
  ) {
    let verdict = outcome.verdict
    guard verdict.isAuthenticated, verdict.status == .accepted || verdict.notice.refusal == .auditLogFull,
      !verdict.isRepetition, options.courier.milliseconds > 0, conversation.isOwn,
      let entry = try? enrolments.folder.entry(of: enrolment.descriptor.deviceID)
    else { return }
    var visit = Visit(entry.folder, options.courier)
    do throws(ProverError) { try visit.exchangeMail(over: &conversation, verdict.notice) } catch {}
    (outcome.deliveredBulletinCount, outcome.hasTakenAuditPage) = (visit.deliveredCount, visit.hasPage)
  }

  /// Checks the terms of the only enrolment that is possible, if it is known before a device has answered.
  package func checkBeforeConnecting() throws(ProverError) {
    if let only = enrolments.only { try termsCheck.check(only) }
  }

  /// Measures, connects, and receives the device's first message.
  func meet(_ connect: () throws(ProverError) -> Conversation) throws(ProverError) -> Meeting {
    var timing = ProofTiming()
    var stopwatch = Stopwatch()
    guard options.cancellation?.isCancelled != true else { throw .cancelled }
    try checkBeforeConnecting()
    keys.warnIfDefault()
    options.progress(.measuring)
    let measurement: LiveMeasurement
    do throws(MeasurementError) { measurement = try measure() } catch { throw .measurement(error) }
    timing.measure = stopwatch.lap()
    options.progress(.connecting)
    let deadline = Deadline(afterMilliseconds: options.timeoutMilliseconds)
    var conversation = try connect()
    let greeting = try conversation.receiveGreeting(by: deadline)
    timing.connect = stopwatch.lap()
    return Meeting(
      measurement: measurement, greeting: greeting, deadline: deadline, conversation: conversation,
      stopwatch: stopwatch, timing: timing)
  }

  /// The largest number of times that a request gets another number because other requests overtook it.
  private static let maximumRenumberingCount = 3

  /// Measures every component before the device is known. The device's configuration then determines which ones count.
  package func measure() throws(MeasurementError) -> LiveMeasurement {
    var measurer = Measurer(keys: keys)
    return try measurer.measure(under: enrolments.measurementPolicy)
  }

  package func enrolment(for challenge: Challenge) throws(ProverError) -> Enrolment {
    let enrolment: Enrolment
    do throws(StateFolderFault) { enrolment = try enrolments.enrolment(for: challenge) } catch {
      throw .state(error)
    }
    // The only possible enrolment was checked before the connection was made, unless another one has replaced it.
    if enrolments.only?.token != enrolment.token { try termsCheck.check(enrolment) }
    return enrolment
  }

  /// Creates a session for this proof's request with the next number for the device.
  package func session(
    of enrolment: Enrolment, proving measurement: LiveMeasurement, _ isRemembered: Bool?
  ) throws(ProverError) -> Enrolment.Session {
    var request = request.copy()
    request.number = try nextNumber(for: enrolment)
    do throws(MeasurementError) {
      return try enrolment.session(
        proving: measurement, with: keys, for: request, isRemembered: isRemembered ?? enrolments.isRemembered(enrolment)
      )
    } catch { throw .measurement(error) }
  }

  /// Takes the next number of a request to the enrolment's device, or the first of `count` consecutive numbers.
  package func nextNumber(for enrolment: Enrolment, count: UInt64 = 1) throws(ProverError) -> UInt64 {
    let numbers: RequestNumbers
    do throws(StateFolderFault) { numbers = try enrolments.requestNumbers(of: enrolment, warn: warn) } catch {
      throw .state(error)
    }
    do throws(RequestNumberFault) { return try numbers.next(count: count) } catch { throw .requestNumber(error) }
  }

  /// Records the highest number that the device has seen. If it cannot be written, the verdict is still valid, and the
  /// device sends the number again.
  private func learn(from verdict: ProverOutcome, of enrolment: Enrolment) {
    guard verdict.isRepetition, let highest = verdict.notice.highestRequestNumber,
      let numbers = try? enrolments.requestNumbers(of: enrolment, warn: warn)
    else { return }
    do throws(RequestNumberFault) { try numbers.raise(to: highest) } catch { warn(.unrecordedRequestNumber(error)) }
  }
}
