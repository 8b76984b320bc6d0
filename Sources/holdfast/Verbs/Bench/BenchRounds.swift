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
      "holdfast bench rounds --connect unix:/run/lock.sock --state phone \\\n--svg rounds.svg"
    ])

  @OptionGroup var place: BenchPlace

  @Option(help: "The number of rounds that are counted.")
  var rounds: Int = 1000

  @OptionGroup var pairing: PairingOptions
  @OptionGroup var budget: DrawnBudget
  @OptionGroup var picture: PictureOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (1...1_000_000).contains(rounds) else { throw Failure(.usage, "--rounds must be from 1 to 1000000") }
    try budget.check()
    try picture.check()
    let endpoint = try place.endpoint()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    var statistics = RoundStatistics()
    try place.proving(at: endpoint) { proof, timeoutMilliseconds throws(ProverError) in
      try run(proof, at: endpoint, timeoutMilliseconds, &statistics)
    }
    report(statistics)
    try picture.write {
      statistics.series.chart(title: "\(rounds) rounds on one connection", budgetMilliseconds: budget.budgetMs).svg
    }
  }

  /// Runs the rounds. Returns the reason why one was not accepted.
  private func run(
    _ proof: borrowing Proof, at endpoint: Endpoint, _ timeoutMilliseconds: Int, _ statistics: inout RoundStatistics
  ) throws(ProverError) -> Failure? {
    try proof.checkBeforeConnecting()
    let measurement: LiveMeasurement
    do throws(MeasurementError) { measurement = try proof.measure() } catch { throw .measurement(error) }
    statistics.measurement = measurement
    var conversation = try Conversation(at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    let greeting = try conversation.receiveGreeting(by: Deadline(afterMilliseconds: timeoutMilliseconds))
    guard case .challenge(let challenge) = greeting else {
      return Failure(.denied, Status.busy.explanation.text, hint: Status.busy.explanation.hint)
    }
    let enrolment = try proof.enrolment(for: challenge)
    var session = try proof.session(of: enrolment, proving: measurement, true)
    // The numbers are taken all at once, so that the times do not include writes to this host's disk.
    let firstNumber = try proof.nextNumber(for: enrolment, count: UInt64(rounds))
    var progress = BenchProgress("rounds", of: rounds)
    var stopwatch = Stopwatch()
    for number in 0...rounds {
      if number == 1 { statistics.record = BenchRecord(.rounds) }
      if number > 0 { session.requestNumber = firstNumber + UInt64(number - 1) }
      var round = RoundCosts()
      let verdict = try runRound(
        &conversation, &session, isFirst: number == 0, timeoutMilliseconds, &round, &stopwatch)
      guard verdict.status == .accepted, !verdict.isRepetition else {
        return Failure(
          .denied, "round \(number) was denied: \(verdict.status.name)", hint: verdict.status.explanation.hint)
      }
      if number > 0 { statistics.add(round) }
      progress.step(number)
    }
    statistics.limits = try conversation.packetLimits()
    return nil
  }

  /// Runs one round to its verdict. The time limit applies to each message. The first challenge has already arrived and
  /// identified the device.
  private func runRound(
    _ conversation: inout Conversation, _ session: inout Enrolment.Session, isFirst: Bool, _ timeoutMilliseconds: Int,
    _ round: inout RoundCosts, _ stopwatch: inout Stopwatch
  ) throws(ProverError) -> ProverOutcome {
    var isReceived = isFirst
    while true {
      let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
      if !isReceived { try conversation.receive(by: deadline) }
      isReceived = false
      let waited = stopwatch.lap()
      let step = try conversation.answer(with: &session, by: deadline)
      switch step {
      case .send:
        round.sizes.challenge = conversation.received.count
        round.sizes.answer = session.outgoing.bytes.count
        round.challenge += waited
      case .awaitChallenge: round.challenge += waited
      case .done:
        round.sizes.verdict = conversation.received.count
        round.verdict += waited
      }
      round.answer += stopwatch.lap()
      if case .done(let verdict) = step { return verdict }
    }
  }

  private func report(_ statistics: RoundStatistics) {
    let (times, sizes) = (statistics.series.total, statistics.largest)
    guard output.json else {
      Console.result("\(rounds) rounds accepted, each of \(sizes.challenge) + \(sizes.answer) + \(sizes.verdict) bytes")
      Console.result(
        "ms  min \(milliseconds(times.min))  p50 \(milliseconds(times.valueAtPercentile(50)))"
          + "  p99 \(milliseconds(times.valueAtPercentile(99)))  p99.9 \(milliseconds(times.valueAtPercentile(99.9)))"
          + "  max \(milliseconds(times.max))")
      if Console.isResultTerminal { for line in times.bars { Console.result(line) } }
      return
    }
    var members = statistics.record.members(count: rounds, statistics.measurement)
    members += [
      ("rounds", .integer(UInt64(rounds))), ("microseconds", times.json), ("bytes", sizes.json),
      ("parts", .object(statistics.series.parts.map { ($0.name, $0.histogram.json) })),
    ]
    if let limits = statistics.limits {
      members.append(("receiving_mtu", .integer(UInt64(limits.receivingByteCount))))
      members.append(("sending_mtu", .integer(UInt64(limits.sendingByteCount))))
    }
    Console.result(.object(members))
  }
}

/// The costs of one round: the wait for each message of the device and the making of the prover's, in nanoseconds, and the
/// lengths of all.
private struct RoundCosts {
  var challenge: UInt64 = 0
  var answer: UInt64 = 0
  var verdict: UInt64 = 0
  var sizes = MessageSizes()
}

/// The durations of the rounds, the largest of their messages, and the circumstances.
private struct RoundStatistics {
  private(set) var series = BenchSeries("total", parts: ["challenge", "answer", "verdict"])
  private(set) var largest = MessageSizes()
  var record = BenchRecord(.rounds)
  var measurement: LiveMeasurement?
  var limits: PacketLimits?

  mutating func add(_ round: RoundCosts) {
    series.record(partNanoseconds: [round.challenge, round.answer, round.verdict])
    largest.challenge = max(largest.challenge, round.sizes.challenge)
    largest.answer = max(largest.answer, round.sizes.answer)
    largest.verdict = max(largest.verdict, round.sizes.verdict)
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
