import ArgumentParser
import HoldfastCore
import HoldfastJSON
import HoldfastTransport

struct BenchLatency: Verb {
  static let configuration = CommandConfiguration(
    commandName: "latency", abstract: "Measure the latency of whole proofs against a budget.",
    discussion: """
      Without --connect a device is made and served in a separate process, in a temporary folder. Exit status 1 when \
      the 99th percentile is over the budget.
      """,
    examples: [
      "holdfast bench latency",
      "holdfast bench latency --connect unix:/run/lock.sock --state phone \\\n--rounds 200",
    ])

  @Option(help: "The device to prove to; needs --state.")
  var connect: String?

  @Option(help: "The folder that enroll filled; needs --connect.", completion: .directory)
  var state: String?

  @Option(
    help: "The device that must answer: its id, or its descriptor; any enrolled one when absent.", completion: .file())
  var device: String?

  @Option(help: "What the device is to do.")
  var command: String = "status"

  @Option(help: "How many proofs are counted.")
  var rounds: Int = 200

  @Option(help: "The budget for the 99th percentile, in milliseconds.")
  var budgetMs: Int = 100

  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (1...1_000_000).contains(rounds) else { throw Failure(.usage, "--rounds is from 1 to 1000000") }
    guard (1...3_600_000).contains(budgetMs) else { throw Failure(.usage, "--budget-ms is from 1 to 3600000") }
    guard device == nil || connect != nil else { throw Failure(.usage, "--device goes with --connect and --state") }
    guard (connect == nil) == (state == nil) else { throw Failure(.usage, "--connect and --state go together") }
    let statistics: LatencyStatistics
    if let connect, let state {
      statistics = try measure(
        at: try Endpoint(peerArgument: connect), folder: ProverFolder(path: state), expecting: device)
    } else {
      statistics = try measureInPlayground()
    }
    try report(statistics)
  }

  private func measureInPlayground() throws(Failure) -> LatencyStatistics {
    let playground = try Playground()
    defer { playground.remove() }
    try playground.makeService()
    try playground.makeDevice()
    let endpoint = try playground.serve()
    try playground.enroll()
    return try measure(at: endpoint, folder: ProverFolder(path: playground.path("prover")), expecting: nil)
  }

  private func measure(
    at endpoint: Endpoint, folder: ProverFolder, expecting device: String?
  ) throws(Failure) -> LatencyStatistics {
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let enrolments = try reading(folder) { () throws(StateFolderFault) in try EnrolmentChoice(folder, expecting: id) }
    let proof = Proof(
      enrolments: enrolments, request: try Request(command: command, parameters: []), endpoint: endpoint,
      timeoutMilliseconds: 30_000)
    var statistics = LatencyStatistics()
    let warmUp = 3
    for round in 0..<warmUp + rounds {
      let outcome = try proof.run(isRemembered: round > 0)
      guard outcome.verdict.status == .accepted else {
        throw Failure(
          .denied, "proof \(round + 1) was denied: \(outcome.verdict.status.name)",
          hint: outcome.verdict.status.explanation.hint)
      }
      if round >= warmUp { statistics.record(outcome.timing) }
      if Console.isTerminal && round % 50 == 49 { Console.note("\(round + 1 - warmUp) of \(rounds) proofs") }
    }
    return statistics
  }

  private func report(_ statistics: LatencyStatistics) throws(Failure) {
    let budget = UInt64(budgetMs) * 1000
    let worst = statistics.total.valueAtPercentile(99)
    if output.json {
      Console.result(
        .object([
          ("rounds", .integer(UInt64(rounds))), ("budget_microseconds", .integer(budget)),
          ("within_budget", .bool(worst <= budget)),
          ("microseconds", .object(statistics.parts.map { ($0.name, $0.histogram.json) })),
        ]))
    } else {
      for line in statistics.table { Console.result(line) }
      if Console.isResultTerminal { for line in statistics.bars { Console.result(line) } }
      Console.result("p99 \(milliseconds(worst)) ms, budget \(budgetMs) ms")
    }
    guard worst <= budget else {
      throw Failure(.denied, "the 99th percentile is over the budget of \(budgetMs) ms").afterResult()
    }
  }
}
