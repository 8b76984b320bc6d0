import ArgumentParser
import HoldfastCore
import HoldfastJSON
import HoldfastTransport

/// Rounds on one connection, with a measurement that was taken once: what the radio and the protocol cost, without the measuring.
struct BenchRounds: Verb {
  static let configuration = CommandConfiguration(
    commandName: "rounds", abstract: "Measure the latency of rounds on one connection, without the measuring.",
    discussion: """
      App and host are measured once, before the first round. The time of a round is from one verdict to the next: the \
      device's challenge, the prover's answer, the device's verdict. The first round, in which the token may have to be \
      sent whole, is not counted. Exit status 0 if and only if every round was accepted.
      """,
    examples: [
      "holdfast bench rounds --connect unix:/run/lock.sock --state phone"
    ])

  @Option(help: "The device to prove to.")
  var connect: String

  @Option(help: "The folder that enroll filled.", completion: .directory)
  var state: String

  @Option(help: "What the device is to do.")
  var command: String = "status"

  @Option(help: "How many rounds are counted.")
  var rounds: Int = 1000

  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (1...1_000_000).contains(rounds) else { throw Failure(.usage, "--rounds is from 1 to 1000000") }
    let timeoutMilliseconds = try waiting.milliseconds()
    let endpoint = try Endpoint(peerArgument: connect)
    let enrolment = try ProverFolder(path: state).load()
    let session = try enrolment.session(for: try Request(command: command, parameters: []), isRemembered: true)
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    var conversation = try Conversation(at: endpoint, session: session, timeoutMilliseconds: timeoutMilliseconds)
    var statistics = RoundStatistics()
    _ = try accepted(&conversation, number: 0, timeoutMilliseconds)
    var stopwatch = Stopwatch()
    for number in 1...rounds {
      let sizes = try accepted(&conversation, number: number, timeoutMilliseconds)
      statistics.record(nanoseconds: stopwatch.lap(), sizes)
      if Console.isTerminal && number % 100 == 0 { Console.note("\(number) of \(rounds) rounds") }
    }
    report(statistics, try conversation.packetLimits())
  }

  /// One round, which has to be accepted; the time is for each message.
  private func accepted(
    _ conversation: inout Conversation, number: Int, _ timeoutMilliseconds: Int
  ) throws(Failure) -> MessageSizes {
    var sizes = MessageSizes()
    while true {
      let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
      try conversation.receive(by: deadline)
      switch try conversation.answer(by: deadline) {
      case .send:
        sizes.challenge = conversation.received.count
        sizes.answer = conversation.session.outgoing.bytes.count
      case .awaitChallenge: break
      case .done(let verdict):
        sizes.verdict = conversation.received.count
        guard verdict.status == .accepted else {
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

/// How long rounds took, and the largest of their messages.
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

/// Bytes of the three messages of a round.
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
