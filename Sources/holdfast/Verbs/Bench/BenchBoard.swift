import ArgumentParser
import HoldfastCharts
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastProver
import HoldfastTransport

/// The benchmark of a board: rounds with the whole token, which the board decrypts and verifies each time, and rounds with a
/// reference to a token that it remembers.
struct BenchBoard: Verb {
  static let configuration = CommandConfiguration(
    commandName: "board", abstract: "Measure a board: whole tokens and remembered tokens, one after the other.",
    discussion: """
      The time of a round runs from the device's challenge to its verdict. With the whole token, the device decrypts and \
      verifies it each time, as it does for a first token. The time over a line says little about a board in QEMU, which runs \
      as fast as its host. If the firmware's console goes to a file (firmware-sim/run --count --console FILE), --console reads \
      how many instructions each answer took. A round then consists of the time that they take at --megahertz, one instruction \
      a cycle, of the time that the answer and the verdict take on a line of --bits-per-second, ten bits a byte, and of this \
      host's computations.
      """,
    examples: [
      "holdfast bench board --connect tty:/dev/ttyACM0 --state phone",
      "holdfast bench board --connect unix-stream:uart --state phone \\\n--console console.log --megahertz 64",
    ])

  @OptionGroup var place: BenchPlace

  @Option(help: "The number of rounds of each kind that are counted.")
  var rounds: Int = 50

  @Option(
    help: "The file to which the firmware's console goes in QEMU, with counted instructions.", completion: .file())
  var console: String?

  @Option(help: "The clock rate in MHz at which instructions are shown that --console has counted; 64 by default.")
  var megahertz: Int?

  @Option(help: "The speed of the line, 115200 by default, that a board would have in place of QEMU's; for --console.")
  var bitsPerSecond: Int?

  @OptionGroup var budget: DrawnBudget
  @OptionGroup var picture: PictureOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (1...100_000).contains(rounds) else { throw Failure(.usage, "--rounds must be from 1 to 100000") }
    guard (1...10_000).contains(megahertz ?? 1) else { throw Failure(.usage, "--megahertz must be from 1 to 10000") }
    guard (300...1_000_000_000).contains(bitsPerSecond ?? 300) else {
      throw Failure(.usage, "--bits-per-second must be from 300 to 1000000000")
    }
    try budget.check()
    try picture.check()
    let endpoint = try place.endpoint()
    if console == nil, megahertz != nil || bitsPerSecond != nil {
      Console.note(
        "the times are measured: \(megahertz != nil ? "--megahertz" : "--bits-per-second") needs --console, with the "
          + "instructions that QEMU counts (firmware-sim/run --count --console FILE)")
    }
    let earlier = try console.map { path throws(Failure) in try BoardConsole(path).instructions.count }
    var result = BoardRounds()
    try place.proving(at: endpoint) { proof, timeoutMilliseconds throws(ProverError) in
      try run(proof, at: endpoint, timeoutMilliseconds, &result)
    }
    if let console, let earlier {
      try result.count(Array(BoardConsole(console).instructions.dropFirst(earlier)), clock, in: console)
    }
    report(result)
    try picture.write {
      let charts = zip(["First tokens", "Remembered tokens"], zip(result.shown, result.bytes)).map { name, kind in
        kind.0.chart(title: "\(name), answers of \(kind.1) bytes", budgetMilliseconds: budget.budgetMs)
      }
      return DistributionChart.svg(
        title: console == nil ? "Rounds with a board, measured" : "Rounds with a board \(clock.text)", charts)
    }
  }

  /// The speeds that a board would have in QEMU's place.
  private var clock: BoardClock {
    BoardClock(megahertz: UInt64(megahertz ?? 64), bitsPerSecond: UInt64(bitsPerSecond ?? 115_200))
  }

  /// Runs the rounds: whole and remembered tokens in turn, of which the first two are not counted. Returns the reason why one was not
  /// accepted.
  private func run(
    _ proof: borrowing Proof, at endpoint: Endpoint, _ timeoutMilliseconds: Int, _ result: inout BoardRounds
  ) throws(ProverError) -> Failure? {
    try proof.checkBeforeConnecting()
    let measurement: LiveMeasurement
    do throws(MeasurementError) { measurement = try proof.measure() } catch { throw .measurement(error) }
    var conversation = try Conversation(at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    var progress = BenchProgress("rounds", of: 2 * rounds)
    var record = BenchRecord(.board)
    for number in -2..<2 * rounds {
      if number == 0 { record = BenchRecord(.board) }
      let deadline = Deadline(afterMilliseconds: timeoutMilliseconds)
      try conversation.receive(by: deadline)
      guard case .challenge(let challenge) = try conversation.greeting() else {
        return Failure(.denied, Status.busy.explanation.text, hint: Status.busy.explanation.hint)
      }
      let isWhole = number % 2 == 0
      var session = try proof.session(of: try proof.enrolment(for: challenge), proving: measurement, !isWhole)
      var round = BoardRound()
      let verdict = try runRound(&conversation, &session, by: deadline, &round)
      guard verdict.status == .accepted, !verdict.isRepetition else {
        return Failure(
          .denied, "round \(number + 3) was denied: \(verdict.status.name)", hint: verdict.status.explanation.hint)
      }
      guard round.answerCount == 1 else {
        return Failure(.denied, "round \(number + 3): the device did not remember the token")
      }
      if number >= 0 { result.add(round) }
      progress.step(number + 1)
    }
    result.common = record.members(count: 2 * rounds, measurement)
    return nil
  }

  /// Runs one round from its challenge, which has arrived, to its verdict.
  private func runRound(
    _ conversation: inout Conversation, _ session: inout Enrolment.Session, by deadline: Deadline,
    _ round: inout BoardRound
  ) throws(ProverError) -> ProverOutcome {
    var stopwatch = Stopwatch()
    while true {
      let step = try conversation.answer(with: &session, by: deadline)
      round.host += stopwatch.lap()
      switch step {
      case .send:
        round.answerCount += 1
        round.answerByteCount = session.outgoing.bytes.count
      case .awaitChallenge: break
      case .done(let verdict):
        round.verdictByteCount = conversation.received.count
        return verdict
      }
      try conversation.receive(by: deadline)
      round.device += stopwatch.lap()
    }
  }

  private func report(_ result: BoardRounds) {
    guard output.json else {
      Console.result(
        "\(rounds) rounds of each kind accepted, answers of \(result.bytes[0]) and \(result.bytes[1]) bytes")
      if console != nil { Console.result("times \(clock.text)") }
      let rows = result.shown.flatMap { series in
        [(series.name, series.total)] + series.parts.map { ("  \($0.name)", $0.histogram) }
      }
      for line in BenchSeries.table(of: rows) { Console.result(line) }
      if Console.isResultTerminal {
        for series in result.shown {
          Console.result(series.name)
          for line in series.total.bars { Console.result(line) }
        }
      }
      return
    }
    let parts = result.shown.flatMap { series in series.parts.map { ("\(series.name): \($0.name)", $0.histogram.json) }
    }
    var members =
      result.common + [
        ("rounds", .integer(UInt64(rounds))),
        ("microseconds", .object(result.overLine.map { ($0.name, $0.total.json) })),
        ("parts", .object(parts)),
        ("bytes", .object(zip(result.overLine, result.bytes).map { ($0.name, .integer(UInt64($1))) })),
      ]
    if !result.instructions.isEmpty {
      members.append(("megahertz", .integer(clock.megahertz)))
      members.append(("bits_per_second", .integer(clock.bitsPerSecond)))
      members.append(("instructions", .object(zip(result.overLine, result.instructions).map { ($0.name, $1.json) })))
    }
    Console.result(.object(members))
  }
}
