import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
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
    let proof = Proof(
      enrolments: try enrolled.choice(), request: try Request(command: command, parameters: []), endpoint: endpoint,
      timeoutMilliseconds: timeoutMilliseconds)
    let measurement = try Proof.measure()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    var conversation = try Conversation(at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    try conversation.receive(by: Deadline(afterMilliseconds: timeoutMilliseconds))
    guard case .challenge(let challenge) = try conversation.greeting() else {
      throw Failure(.denied, Status.busy.explanation.text, hint: Status.busy.explanation.hint)
    }
    let enrolment = try proof.enrolment(for: challenge)
    var session = try proof.session(of: enrolment, proving: measurement, true)
    // The numbers are taken all at once, so that the times do not include writes to this host's disk.
    let firstNumber = try proof.enrolments.requestNumbers(of: enrolment).next(count: UInt64(rounds))
    var statistics = RoundStatistics()
    _ = try accepted(&conversation, &session, number: 0, timeoutMilliseconds)
    var stopwatch = Stopwatch()
    for number in 1...rounds {
      session.requestNumber = firstNumber + UInt64(number - 1)
      let sizes = try accepted(&conversation, &session, number: number, timeoutMilliseconds)
      statistics.record(nanoseconds: stopwatch.lap(), sizes)
      if Console.isTerminal && number % 100 == 0 { Console.note("\(number) of \(rounds) rounds") }
    }
    report(statistics, try conversation.packetLimits())
  }

  /// Runs one round, which must be accepted. The time limit applies to each message.
  private func accepted(
    _ conversation: inout Conversation, _ session: inout Enrolment.Session, number: Int, _ timeoutMilliseconds: Int
  ) throws(Failure) -> MessageSizes {
    var sizes = MessageSizes()
    // The first challenge has already arrived and identified the device.
    var isReceived = number == 0
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
        guard verdict.status == .accepted, !verdict.isRepetition else {
          throw Failure(
            .denied, "round \(number) was denied: \(verdict.status.name)", hint: verdict.status.explanation.hint)
        }
        return sizes
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
