import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastTransport

/// Where the time of one proof went, in nanoseconds.
struct ProofTiming {
  /// Measuring app and host.
  var measure: UInt64 = 0
  /// Connecting, until the device's challenge was there.
  var connect: UInt64 = 0
  /// The prover's own part of the round.
  var round: UInt64 = 0
  /// Waiting for the device's verdict.
  var device: UInt64 = 0

  var total: UInt64 { measure + connect + round + device }
}

/// The end of one proof.
struct ProofOutcome {
  /// The enrolment that was proved; nil where the device had no room, and did not say which one it is.
  let enrolment: Enrolment?
  let verdict: ProverVerdict
  let result: [UInt8]
  let timing: ProofTiming
  /// How often the request was sent.
  let attemptCount: Int
}

extension ProofOutcome {
  /// Whether another process with the same token had a larger number accepted first.
  ///
  /// The request was sent once only, and the device says under its seal that it did not act on it. It may be sent with another
  /// number: nothing is done twice by that.
  fileprivate var isOvertaken: Bool { verdict.isRepetition && verdict.status == .internal && attemptCount == 1 }
}

/// One proof by this process, measured anew, over one connection, to whichever enrolled device answers there.
struct Proof: ~Copyable {
  let enrolments: EnrolmentChoice
  let request: Request
  let endpoint: Endpoint
  let timeoutMilliseconds: Int

  /// Measures, connects, chooses the enrolment of the device that answers, and runs the session to its verdict.
  ///
  /// - Parameter isRemembered: whether the device took the token before; nil to look it up in the state folder.
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

  /// How often a request gets another number because others overtook it.
  private static let maximumRenumberingCount = 3

  /// Measures every component, before it is known which device answers. Which of them count, a configuration says.
  static func measure() throws(Failure) -> LiveMeasurement {
    var measurer = Measurer()
    do throws(MeasurementError) { return try measurer.measure() } catch { throw Failure(error) }
  }

  func enrolment(for challenge: Challenge) throws(Failure) -> Enrolment {
    do throws(StateFolderFault) { return try enrolments.enrolment(for: challenge) } catch {
      throw Failure(error, folder: enrolments.folder.path, endpoint: endpoint)
    }
  }

  /// A session for this proof's request, which takes the next number of those to the device.
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

  /// The verdict stands where the number cannot be written: the device says it again.
  private func learn(from verdict: ProverVerdict, of enrolment: Enrolment) {
    guard verdict.isRepetition, let highest = verdict.notice.highestRequestNumber else { return }
    do throws(Failure) { try enrolments.requestNumbers(of: enrolment).raise(to: highest) } catch {
      Console.warning(error.message)
    }
  }
}
