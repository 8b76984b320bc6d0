import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport

struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure speed: proofs, rounds and one-time passwords.",
    examples: [
      "holdfast bench latency --rounds 200",
      "holdfast bench otp",
    ],
    subcommands: [BenchLatency.self, BenchRounds.self, BenchOTP.self])
}

struct BenchLatency: Verb {
  static let configuration = CommandConfiguration(
    commandName: "latency", abstract: "Measure the latency of whole proofs against a budget.",
    discussion: """
      Without --connect, the command creates a device in a temporary folder and serves it in a separate process. The exit \
      status is 1 if the 99th percentile is over the budget.
      """,
    examples: [
      "holdfast bench latency",
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

  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (1...1_000_000).contains(rounds) else { throw Failure(.usage, "--rounds must be from 1 to 1000000") }
    guard (1...3_600_000).contains(budgetMs) else { throw Failure(.usage, "--budget-ms must be from 1 to 3600000") }
    guard device == nil || connect != nil else { throw Failure(.usage, "--device requires --connect and --state") }
    guard (connect == nil) == (state == nil) else { throw Failure(.usage, "--connect and --state require each other") }
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
    let request = try Request(command: command, parameters: [])
    let proof: Proof
    do throws(ProverError) {
      proof = try Prover(state: folder.path, keys: .app, warn: Console.warn).proof(enrolments, request, ProofOptions())
    } catch { throw Failure(error, folder: folder.path, endpoint: endpoint) }
    var statistics = LatencyStatistics()
    let warmUp = 3
    for round in 0..<warmUp + rounds {
      let outcome = try proving(in: folder, at: endpoint) { () throws(ProverError) in
        try proof.run(at: endpoint, isRemembered: round > 0)
      }
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

struct BenchOTP: Verb {
  static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "Measure how many one-time passwords this host computes per second.",
    discussion: """
      The codes are HOTP codes with HMAC-SHA-1 and six digits, computed in one thread. Each code starts from the bytes of the \
      key and is compared with the code in RFC 4226. The exit status is 2 if one differs.
      """,
    examples: [
      "holdfast bench otp --seconds 5"
    ])

  @Option(help: "The duration of the measurement in seconds, 1 to 3600.")
  var seconds: Int = 1

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    guard (1...3600).contains(seconds) else { throw Failure(.usage, "--seconds must be from 1 to 3600") }
    let expected = Array(Self.rfcCodes.utf8)
    let key = Array("12345678901234567890".utf8)
    let end = UInt64(seconds) * 1_000_000_000
    var cryptography = OpenSSLCryptography()
    var (count, wrong, elapsed): (UInt64, UInt64, UInt64) = (0, 0, 0)
    let start = monotonicNanoseconds()
    repeat {
      do throws(CryptographyFailure) {
        for _ in 0..<100 {
          for counter in 0..<Self.rfcCodeCount {
            let code = try HOTP.code(
              counter: UInt64(counter), key: key.span, hash: .sha1, length: .six, using: &cryptography)
            let start = counter * CodeLength.six.digits
            if !code.bytes.elementsEqual(expected.span.extracting(start..<start + CodeLength.six.digits)) { wrong += 1 }
          }
        }
      } catch { throw Failure(.fault, "libcrypto failed") }
      count += UInt64(100 * Self.rfcCodeCount)
      elapsed = monotonicNanoseconds() - start
    } while elapsed < end
    guard wrong == 0 else { throw Failure(.malformed, "\(wrong) of \(count) codes are wrong") }
    report(codes: count, nanoseconds: elapsed)
  }

  private func report(codes: UInt64, nanoseconds: UInt64) {
    let perSecond = UInt64(Double(codes) * 1e9 / Double(nanoseconds))
    guard output.json else { return Console.result("\(perSecond) codes per second, \(nanoseconds / codes) ns each") }
    Console.result(
      .object([
        ("codes", .integer(codes)), ("microseconds", .integer(nanoseconds / 1000)),
        ("codes_per_second", .integer(perSecond)),
      ]))
  }

  /// The codes of the counters 0 to 9 without separators. Source: RFC 4226 appendix D.
  private static let rfcCodes = "755224287082359152969429338314254676287922162583399871520489"
  private static let rfcCodeCount = 10
}
