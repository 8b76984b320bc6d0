import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport

/// The benchmark of rounds on one connection with one measurement. It shows the time of the radio and the protocol
/// without that of the measurement.
struct BenchRounds: Verb {
  static let configuration = CommandConfiguration(
    commandName: "rounds", abstract: "Measure the latency of rounds on one connection, without the measurements.",
    discussion: """
      App and host are measured once, before the first round. The time of a round runs from one verdict to the next and \
      includes the device's challenge, the prover's answer and the device's verdict. The first round is not counted, \
      because it may send the whole token. The exit status is 0 if and only if every round was accepted.
      """,
    examples: [
      "holdfast bench rounds --connect unix:/run/lock.sock --state phone"
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var enrolled: StateOptions

  @Option(help: "The command for the device.")
  var command: String = "status"

  @Option(help: "The number of rounds that are counted.")
  var rounds: Int = 1000

  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (1...1_000_000).contains(rounds) else { throw Failure(.usage, "--rounds must be from 1 to 1000000") }
    let timeoutMilliseconds = try waiting.milliseconds()
    let endpoint = try Endpoint(peerArgument: connect)
    let request = try Request(command: command, parameters: [])
    let choice = try enrolled.choice()
    let proof: Proof
    do throws(ProverError) {
      proof = try Prover(state: enrolled.state, keys: .app, warn: Console.warn).proof(
        choice, request, ProofOptions(timeoutMilliseconds: timeoutMilliseconds))
    } catch { throw Failure(error, folder: enrolled.state, endpoint: endpoint) }
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    var denial: Failure?
    try proving(in: enrolled.folder, at: endpoint) { () throws(ProverError) in
      denial = try run(proof, at: endpoint, timeoutMilliseconds)
    }
    if let denial { throw denial }
  }

  /// Runs the rounds and reports them. Returns the reason why one was not accepted.
  private func run(
    _ proof: borrowing Proof, at endpoint: Endpoint, _ timeoutMilliseconds: Int
  ) throws(ProverError) -> Failure? {
    try proof.checkBeforeConnecting()
    let measurement: LiveMeasurement
    do throws(MeasurementError) { measurement = try proof.measure() } catch { throw .measurement(error) }
    var conversation = try Conversation(at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    try conversation.receive(by: Deadline(afterMilliseconds: timeoutMilliseconds))
    guard case .challenge(let challenge) = try conversation.greeting() else {
      return Failure(.denied, Status.busy.explanation.text, hint: Status.busy.explanation.hint)
    }
    let enrolment = try proof.enrolment(for: challenge)
    var session = try proof.session(of: enrolment, proving: measurement, true)
    // The numbers are taken all at once, so that the times do not include writes to this host's disk.
    let firstNumber = try proof.nextNumber(for: enrolment, count: UInt64(rounds))
    var statistics = RoundStatistics()
    var stopwatch = Stopwatch()
    for number in 0...rounds {
      if number > 0 { session.requestNumber = firstNumber + UInt64(number - 1) }
      var sizes = MessageSizes()
      let verdict = try runRound(&conversation, &session, isFirst: number == 0, timeoutMilliseconds, &sizes)
      guard verdict.status == .accepted, !verdict.isRepetition else {
        return Failure(
          .denied, "round \(number) was denied: \(verdict.status.name)", hint: verdict.status.explanation.hint)
      }
      let nanoseconds = stopwatch.lap()
      if number > 0 { statistics.record(nanoseconds: nanoseconds, sizes) }
      if Console.isTerminal && number > 0 && number % 100 == 0 { Console.note("\(number) of \(rounds) rounds") }
    }
    report(statistics, try conversation.packetLimits())
    return nil
  }

  /// Runs one round to its verdict. The time limit applies to each message. The first challenge has already arrived and
  /// identified the device.
  private func runRound(
    _ conversation: inout Conversation, _ session: inout Enrolment.Session, isFirst: Bool, _ timeoutMilliseconds: Int,
    _ sizes: inout MessageSizes
  ) throws(ProverError) -> ProverOutcome {
    var isReceived = isFirst
    while true {
      let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
      if !isReceived { try conversation.receive(by: deadline) }
      isReceived = false
      switch try conversation.answer(with: &session, by: deadline) {
      case .send:
        sizes.challenge = conversation.received.count
        sizes.answer = session.outgoing.bytes.count
      case .awaitChallenge: break
      case .done(let verdict):
        sizes.verdict = conversation.received.count
        return verdict
      }
    }
  }

  private func report(_ statistics: RoundStatistics, _ limits: PacketLimits?) {
    let (times, sizes) = (statistics.times, statistics.largest)
    guard output.json else {
      Console.result("\(rounds) rounds accepted, each of \(sizes.challenge) + \(sizes.answer) + \(sizes.verdict) bytes")
      Console.result(
        "ms  min \(milliseconds(times.min))  p50 \(milliseconds(times.valueAtPercentile(50)))"
          + "  p99 \(milliseconds(times.valueAtPercentile(99)))  max \(milliseconds(times.max))")
      return
    }
    var members: [(String, JSONValue)] = [
      ("rounds", .integer(UInt64(rounds))), ("microseconds", times.json), ("bytes", sizes.json),
    ]
    if let limits {
      members.append(("receiving_mtu", .integer(UInt64(limits.receivingByteCount))))
      members.append(("sending_mtu", .integer(UInt64(limits.sendingByteCount))))
    }
    Console.result(.object(members))
  }
}

/// The durations of the rounds, and the largest of their messages.
private struct RoundStatistics {
  private(set) var times = LatencyHistogram()
  private(set) var largest = MessageSizes()

  mutating func record(nanoseconds: UInt64, _ sizes: MessageSizes) {
    times.record(nanoseconds / 1000)
    largest.challenge = max(largest.challenge, sizes.challenge)
    largest.answer = max(largest.answer, sizes.answer)
    largest.verdict = max(largest.verdict, sizes.verdict)
  }
}

/// The lengths of the three messages of a round, in bytes.
private struct MessageSizes {
  var challenge = 0
  var answer = 0
  var verdict = 0

  var json: JSONValue {
    .object([
      ("challenge", .integer(UInt64(challenge))), ("answer", .integer(UInt64(answer))),
      ("verdict", .integer(UInt64(verdict))),
    ])
  }
}
