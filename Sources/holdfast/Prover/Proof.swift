import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastTransport

/// The times of the parts of one proof, in nanoseconds.
struct ProofTiming {
  /// The time to measure the app and its host.
  var measure: UInt64 = 0
  /// The time to connect and receive the device's challenge.
  var connect: UInt64 = 0
  /// The time of the prover's computations in the round.
  var round: UInt64 = 0
  /// The time until the device's verdict arrived.
  var device: UInt64 = 0

  var total: UInt64 { measure + connect + round + device }
}

/// The outcome of one proof.
struct ProofOutcome {
  /// The enrolment that was proved; nil if the device had no room and did not identify itself.
  let enrolment: Enrolment?
  let verdict: ProverOutcome
  let result: [UInt8]
  let timing: ProofTiming
  /// The number of times that the request was sent.
  let attemptCount: Int
}

extension ProofOutcome {
  /// Whether the device had already accepted a larger number from another process with the same token.
  ///
  /// The request was sent only once, and the device states under its seal that it did not act on it. Sending it with
  /// another number therefore cannot repeat an action.
  fileprivate var isOvertaken: Bool { verdict.isRepetition && verdict.status == .internal && attemptCount == 1 }
}

/// One proof by this process over one connection, with a new measurement, to any enrolled device that answers.
struct Proof: ~Copyable {
  let enrolments: EnrolmentChoice
  let request: Request
  let endpoint: Endpoint
  let timeoutMilliseconds: Int

  /// Measures, connects, chooses the enrolment of the device that answers, and runs the session to its verdict.
  ///
  /// - Parameter isRemembered: Whether the device already has the token; nil to look it up in the state folder.
  func run(isRemembered: Bool? = nil) throws(Failure) -> ProofOutcome {
    var timing = ProofTiming()
    var stopwatch = Stopwatch()
    let measurement = try Self.measure()
    timing.measure = stopwatch.lap()
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    var conversation = try Conversation(at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    let greeting = try conversation.receiveGreeting(by: deadline)
    timing.connect = stopwatch.lap()
    let challenge: Challenge
    switch greeting {
    case .verdict(let verdict):
      return ProofOutcome(enrolment: nil, verdict: verdict, result: [], timing: timing, attemptCount: 0)
    case .challenge(let first): challenge = first
    }
    let enrolment = try enrolment(for: challenge)
    var session = try session(of: enrolment, proving: measurement, isRemembered)
    var attemptCount = 0
    var overtaken: ProofOutcome?
    var renumberingCount = 0
    while true {
      let step = try conversation.answer(with: &session, by: deadline)
      timing.round += stopwatch.lap()
      switch step {
      case .send: attemptCount += 1
      case .awaitChallenge: break
      case .done(let verdict):
        learn(from: verdict, of: enrolment)
        let outcome = ProofOutcome(
          enrolment: enrolment, verdict: verdict, result: Array(session.reply.result.bytes), timing: timing,
          attemptCount: attemptCount)
        guard outcome.isOvertaken, renumberingCount < Self.maximumRenumberingCount else { return outcome }
        session.requestNumber = try enrolments.requestNumbers(of: enrolment).next()
        overtaken = outcome
        attemptCount = 0
        renumberingCount += 1
      }
      do throws(Failure) { try conversation.receive(by: deadline) } catch {
        if let overtaken { return overtaken }
        guard let verdict = session.verdictSoFar else { throw error }
        return ProofOutcome(
          enrolment: enrolment, verdict: verdict, result: [], timing: timing, attemptCount: attemptCount)
      }
      timing.device += stopwatch.lap()
    }
  }

  /// The largest number of times that a request gets another number because other requests overtook it.
  private static let maximumRenumberingCount = 3

  /// Measures every component before the device is known. The device's configuration then determines which ones count.
  static func measure() throws(Failure) -> LiveMeasurement {
    var measurer = Measurer()
    do throws(MeasurementError) { return try measurer.measure() } catch { throw Failure(error) }
  }

  func enrolment(for challenge: Challenge) throws(Failure) -> Enrolment {
    do throws(StateFolderFault) { return try enrolments.enrolment(for: challenge) } catch {
      throw Failure(error, folder: enrolments.folder.path, endpoint: endpoint)
    }
  }

  /// Creates a session for this proof's request with the next number for the device.
  func session(
    of enrolment: Enrolment, proving measurement: LiveMeasurement, _ isRemembered: Bool?
  ) throws(Failure) -> Enrolment.Session {
    var request = request.copy()
    request.number = try enrolments.requestNumbers(of: enrolment).next()
    do throws(MeasurementError) {
      return try enrolment.session(
        proving: measurement, for: request, isRemembered: isRemembered ?? enrolments.isRemembered(enrolment))
    } catch { throw Failure(error) }
  }

  /// Records the highest number that the device has seen. If it cannot be written, the verdict is still valid, and the
  /// device sends the number again.
  private func learn(from verdict: ProverOutcome, of enrolment: Enrolment) {
    guard verdict.isRepetition, let highest = verdict.notice.highestRequestNumber else { return }
    do throws(Failure) { try enrolments.requestNumbers(of: enrolment).raise(to: highest) } catch {
      Console.warning(error.message)
    }
  }
}
