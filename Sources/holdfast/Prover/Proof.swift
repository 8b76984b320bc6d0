import HoldfastCore
import HoldfastTransport

/// Where the time of one proof went, in nanoseconds.
struct ProofTiming {
  /// Measuring app and device.
  var measure: UInt64 = 0
  /// Connecting, until the device's challenge was there.
  var connect: UInt64 = 0
  /// The prover's own part of the round.
  var round: UInt64 = 0
  /// Waiting for the device's verdict.
  var device: UInt64 = 0

  var total: UInt64 { measure + connect + round + device }
}

/// What came of one proof.
struct ProofOutcome {
  let verdict: ProverVerdict
  let result: [UInt8]
  let timing: ProofTiming
}

/// One proof by this process, measured anew, over one connection.
struct Proof: ~Copyable {
  let enrolment: Enrolment
  let request: Request
  let endpoint: Endpoint
  let timeoutMilliseconds: Int

  /// Measures, connects and runs the session to its verdict.
  func run(isRemembered: Bool) throws(Failure) -> ProofOutcome {
    var timing = ProofTiming()
    var stopwatch = Stopwatch()
    let session = try enrolment.session(for: request, isRemembered: isRemembered)
    timing.measure = stopwatch.lap()
    let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
    var conversation = try Conversation(at: endpoint, session: session, timeoutMilliseconds: timeoutMilliseconds)
    while true {
      do throws(Failure) { try conversation.receive(by: deadline) } catch {
        guard let verdict = conversation.session.verdictSoFar else { throw error }
        return ProofOutcome(verdict: verdict, result: [], timing: timing)
      }
      if timing.connect == 0 { timing.connect = stopwatch.lap() } else { timing.device += stopwatch.lap() }
      let step = try conversation.answer(by: deadline)
      timing.round += stopwatch.lap()
      if case .done(let verdict) = step {
        return ProofOutcome(verdict: verdict, result: Array(conversation.session.reply.result.bytes), timing: timing)
      }
    }
  }
}
