import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport

struct BenchLatency: Verb {
  static let configuration = CommandConfiguration(
    commandName: "latency", abstract: "Measure the latency of whole proofs against a budget.",
    discussion: """
      Without --connect, the command creates a device in a temporary folder and serves it in a separate process. The exit \
      status is 1 if the 99th percentile is over the budget.
      """,
    examples: [
      "holdfast bench latency --svg latency.svg",
      "holdfast bench latency --connect unix:/run/lock.sock --state phone \\\n--rounds 200",
    ])

  @Option(help: "The device's endpoint; requires --state.")
  var connect: String?

  @Option(help: "The prover's state folder, which enroll filled; requires --connect.", completion: .directory)
  var state: String?

  @Option(
    help: "The device that must answer: its id or its descriptor. By default, any enrolled device.", completion: .file()
  )
  var device: String?

  @Option(help: "The command for the device.")
  var command: String = "status"

  @Option(help: "The number of proofs that are counted.")
  var rounds: Int = 200

  @Option(help: "The budget for the 99th percentile, in milliseconds.")
  var budgetMs: Int = 100

  @OptionGroup var picture: PictureOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (1...1_000_000).contains(rounds) else { throw Failure(.usage, "--rounds must be from 1 to 1000000") }
    try DrawnBudget.check(budgetMs)
    guard device == nil || connect != nil else { throw Failure(.usage, "--device requires --connect and --state") }
    guard (connect == nil) == (state == nil) else { throw Failure(.usage, "--connect and --state require each other") }
    try picture.check()
    let outcome: Outcome
    if let connect, let state {
      outcome = try measure(
        at: try Endpoint(peerArgument: connect), folder: ProverFolder(path: state), expecting: device)
    } else {
      outcome = try measureInPlayground()
    }
    try report(outcome)
  }

  private func measureInPlayground() throws(Failure) -> Outcome {
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
  ) throws(Failure) -> Outcome {
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let enrolments = try reading(folder) { () throws(StateFolderFault) in try EnrolmentChoice(folder, expecting: id) }
    let request = try Request(command: command, parameters: [])
    let proof: Proof
    do throws(ProverError) {
      proof = try Prover(state: folder.path, keys: .app, warn: Console.warn).proof(enrolments, request, ProofOptions())
    } catch { throw Failure(error, folder: folder.path, endpoint: endpoint) }
    var series = BenchSeries("total", parts: ["measure", "connect", "round", "device"])
    var progress = BenchProgress("proofs", of: rounds)
    let warmUp = 3
    var record = BenchRecord(.latency)
    for round in 0..<warmUp + rounds {
      let outcome = try proving(in: folder, at: endpoint) { () throws(ProverError) in
        try proof.run(at: endpoint, isRemembered: round > 0)
      }
      guard outcome.verdict.status == .accepted else {
        throw Failure(
          .denied, "proof \(round + 1) was denied: \(outcome.verdict.status.name)",
          hint: outcome.verdict.status.explanation.hint)
      }
      guard round >= warmUp else {
        record = BenchRecord(.latency)
        continue
      }
      let timing = outcome.timing
      series.record(partNanoseconds: [timing.measure, timing.connect, timing.round, timing.device])
      progress.step(round + 1 - warmUp)
    }
    return Outcome(series: series, common: record.members(count: rounds, try? proof.measure()))
  }

  private struct Outcome {
    let series: BenchSeries
    /// The members of the result that every benchmark has.
    let common: [(String, JSONValue)]
  }

  private func report(_ outcome: Outcome) throws(Failure) {
    let series = outcome.series
    let budget = UInt64(budgetMs) * 1000
    let worst = series.total.valueAtPercentile(99)
    if output.json {
      Console.result(
        .object(
          outcome.common + [
            ("rounds", .integer(UInt64(rounds))), ("budget_microseconds", .integer(budget)),
            ("within_budget", .bool(worst <= budget)),
            ("microseconds", .object(series.all.map { ($0.name, $0.histogram.json) })),
          ]))
    } else {
      for line in BenchSeries.table(of: series.all) { Console.result(line) }
      if Console.isResultTerminal { for line in series.total.bars { Console.result(line) } }
      Console.result("p99 \(milliseconds(worst)) ms, budget \(budgetMs) ms")
    }
    try picture.write { series.chart(title: "\(rounds) whole proofs", budgetMilliseconds: budgetMs).svg }
    guard worst <= budget else {
      throw Failure(.denied, "the 99th percentile is over the budget of \(budgetMs) ms").afterResult()
    }
  }
}
