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
      how many instructions each answer took, and shows the time that they take at --megahertz, one instruction a cycle.
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

  @Option(help: "The clock rate in MHz at which counted instructions are shown; requires --console.")
  var megahertz: Int?

  @Option(help: "The budget that the picture shows, in milliseconds.")
  var budgetMs: Int = 100

  @OptionGroup var picture: PictureOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (1...100_000).contains(rounds) else { throw Failure(.usage, "--rounds must be from 1 to 100000") }
    guard (1...3_600_000).contains(budgetMs) else { throw Failure(.usage, "--budget-ms must be from 1 to 3600000") }
    guard megahertz == nil || console != nil else { throw Failure(.usage, "--megahertz requires --console") }
    guard (1...10_000).contains(megahertz ?? 64) else { throw Failure(.usage, "--megahertz must be from 1 to 10000") }
    try picture.check()
    let endpoint = try place.endpoint()
    let earlier = try console.map { path throws(Failure) in try BoardConsole(path).instructions.count }
    var result = Rounds()
    try place.proving(at: endpoint) { proof, timeoutMilliseconds throws(ProverError) in
      try run(proof, at: endpoint, timeoutMilliseconds, &result)
    }
    if let console, let earlier {
      try result.count(Array(BoardConsole(console).instructions.dropFirst(earlier)), megahertz ?? 64, in: console)
    }
    report(result)
    try picture.write {
      let place = console == nil ? "over the line" : "at \(megahertz ?? 64) MHz, one instruction a cycle"
      return result.shown[0].chart(title: "A first token on the board, \(place)", budgetMilliseconds: budgetMs)
    }
  }

  /// Runs the rounds: whole and remembered tokens in turn, of which the first two are not counted. Returns the reason why one was not
  /// accepted.
  private func run(
    _ proof: borrowing Proof, at endpoint: Endpoint, _ timeoutMilliseconds: Int, _ result: inout Rounds
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
      if number >= 0 { result.add(round, isWhole: isWhole) }
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
        round.byteCount = session.outgoing.bytes.count
      case .awaitChallenge: break
      case .done(let verdict): return verdict
      }
      try conversation.receive(by: deadline)
      round.device += stopwatch.lap()
    }
  }

  private func report(_ result: Rounds) {
    guard output.json else {
      Console.result(
        "\(rounds) rounds of each kind accepted, answers of \(result.bytes[0]) and \(result.bytes[1]) bytes")
      if console != nil { Console.result("times at \(megahertz ?? 64) MHz, one instruction a cycle") }
      for line in BenchSeries.table(of: result.shown.map { ($0.name, $0.total) }) { Console.result(line) }
      if Console.isResultTerminal {
        for series in result.shown {
          Console.result(series.name)
          for line in series.total.bars { Console.result(line) }
        }
      }
      return
    }
    var members =
      result.common + [
        ("rounds", .integer(UInt64(rounds))),
        ("microseconds", .object(result.overLine.map { ($0.name, $0.total.json) })),
        ("bytes", .object(zip(result.overLine, result.bytes).map { ($0.name, .integer(UInt64($1))) })),
      ]
    if !result.instructions.isEmpty {
      members.append(("megahertz", .integer(UInt64(megahertz ?? 64))))
      members.append(("instructions", .object(zip(result.overLine, result.instructions).map { ($0.name, $1.json) })))
    }
    Console.result(.object(members))
  }
}

/// One round: the host's computations, the wait for the device, in nanoseconds, and the answers that were sent.
private struct BoardRound {
  var host: UInt64 = 0
  var device: UInt64 = 0
  var answerCount = 0
  var byteCount = 0
}

/// The rounds of both kinds: whole tokens, then remembered ones.
private struct Rounds {
  private(set) var overLine = ["first", "remembered"].map { BenchSeries($0, parts: ["host", "line and device"]) }
  private(set) var bytes = [0, 0]
  private(set) var instructions: [LatencyHistogram] = []
  private var computed: [BenchSeries] = []
  var common: [(String, JSONValue)] = []

  /// The series that people see: by counted instructions, if there are any.
  var shown: [BenchSeries] { computed.isEmpty ? overLine : computed }

  mutating func add(_ round: BoardRound, isWhole: Bool) {
    let kind = isWhole ? 0 : 1
    overLine[kind].record(partNanoseconds: [round.host, round.device])
    bytes[kind] = max(bytes[kind], round.byteCount)
  }

  /// Takes the instructions of all answers, of which the first two do not count.
  mutating func count(_ taken: [UInt64], _ megahertz: Int, in path: String) throws(Failure) {
    guard taken.count == 2 + Int(overLine[0].total.totalCount + overLine[1].total.totalCount) else {
      throw Failure(
        .malformed, "\(path) has \(taken.count) new answers, which are not those of these rounds",
        hint: "start the board with firmware-sim/run --count --console \(path.shellWord), and let nobody else use it")
    }
    instructions = overLine.map { _ in LatencyHistogram() }
    computed = overLine.map { BenchSeries($0.name) }
    for (index, count) in taken.dropFirst(2).enumerated() {
      instructions[index % 2].record(count)
      computed[index % 2].record(nanoseconds: count * 1000 / UInt64(megahertz))
    }
  }
}

/// The console of the firmware in a file. Its lines tell the ticks of each answer, of 40 instructions each.
package struct BoardConsole {
  /// The instructions of each answer, in their order.
  package let instructions: [UInt64]

  private static let byteLimit = 64 << 20

  /// Reads the file.
  init(_ path: String) throws(Failure) {
    self.init(text: String(decoding: try Input.read(path, limit: Self.byteLimit), as: UTF8.self))
  }

  /// Reads the lines `holdfast: status S, ticks T, stack B`, and skips others.
  package init(text: String) {
    var instructions: [UInt64] = []
    for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
      let parts = line.split(separator: UInt8(ascii: ","))
      guard parts.count == 3, parts[0].starts(with: "holdfast: status ".utf8), parts[1].starts(with: " ticks ".utf8),
        let ticks = decimal(String(Substring(parts[1].dropFirst(" ticks ".utf8.count)))), ticks <= UInt32.max
      else { continue }
      instructions.append(ticks * 40)
    }
    self.instructions = instructions
  }
}
