import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastTransport

struct Demo: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Show it all on this machine: enrol, prove, and try every attack.",
    discussion: "Device and provers are separate processes. Exit status 0 only if every line came out as it must.",
    examples: [
      "holdfast demo"
    ])

  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    BuiltInKeys.warnOfDevelopmentKey()
    let playground = try Playground()
    defer { playground.remove() }
    var demonstration = Demonstration(playground: playground, story: Story(isSilent: output.json))
    try demonstration.run()
    if output.json { Console.result(demonstration.story.json) }
    guard demonstration.story.isTrue else {
      throw Failure(.malformed, "a line did not come out as it must").afterResult()
    }
  }
}

/// The demonstration that `holdfast demo` runs.
struct Demonstration {
  let playground: Playground
  var story: Story

  mutating func run() throws(Failure) {
    story.tell("Holdfast: a lock without Internet, and an app that proves itself to it.")
    let endpoint = try prepare()
    try prove(at: endpoint)
    let alice = Person(name: "alice", playground: playground, address: endpoint.description)
    try proveThePerson(alice)
    try proveTheCommand(alice)
    let attacker = Attacker(enrolment: try playground.enrolment("prover"), endpoint: endpoint)
    story.heading("Attacks, each tried for real")
    try attackTheWire(attacker)
    try attackTheToken(attacker)
    try attackTheCodes(alice)
    try attackTheProver()
    try attackThePolicy()
    try attackTheBoot()
    try attackWithAnImpostor(attacker)
    try measureLatency(attacker.enrolment, at: endpoint)
    try checkAudit()
  }

  private mutating func prepare() throws(Failure) -> Endpoint {
    story.heading("Once, while there is a network")
    try playground.makeService()
    story.step("a service approves this program's image", "signs what it issues with ES256")
    try playground.makeDevice()
    story.step("a device makes its key and trusts that issuer", "lock and unlock need integrity and device")
    try playground.enroll()
    let token = try playground.enrolment("prover").token
    story.step("the app is measured, attested and enrolled", "a token of \(token.count) bytes, encrypted to the device")
    return try playground.serve()
  }

  private mutating func prove(at endpoint: Endpoint) throws(Failure) {
    story.heading("From then on, offline: \(endpoint), two processes")
    for (text, command, result) in [
      ("status", "status", "locked"), ("unlock", "unlock", "unlocked"),
      ("unlock once more, by a reference to the token", "unlock", "unlocked"), ("lock", "lock", "locked"),
    ] {
      let ending = try runProver(command: command)
      story.expect(
        text, "accepted", ending.statusName, detail: ending.output.contains("\"result\":\"\(result)\"") ? result : "?")
    }
  }

  /// Checks a step that ends in a status.
  mutating func expect(_ text: String, _ expected: Status, _ actual: Status) {
    story.expect(text, expected.name, actual.name)
  }

  /// Runs `holdfast prove` in a separate process.
  func runProver(
    _ program: String? = nil, state: String = "prover", at endpoint: Endpoint? = nil, command: String = "unlock",
    options: [String] = [], environment: [String: String] = [:], isTraced: Bool = false
  ) throws(Failure) -> ChildProcess.Ending {
    let own = try Playground.program
    let address = endpoint?.description ?? "unix:\(playground.path("device")).sock"
    let arguments =
      [
        program ?? own, "prove", "--json", "--connect", address, "--state", playground.path(state), "--command",
        command,
      ] + options
    return isTraced
      ? try ChildProcess.runTraced(arguments, environment: environment)
      : try ChildProcess.run(arguments, environment: environment)
  }

  private mutating func measureLatency(_ enrolment: Enrolment, at endpoint: Endpoint) throws(Failure) {
    let folder = ProverFolder(path: playground.path("prover"))
    let enrolments = try reading(folder) { () throws(StateFolderFault) in
      try EnrolmentChoice(folder, expecting: enrolment.descriptor.deviceID)
    }
    let proof = Proof(
      enrolments: enrolments, request: Request(command: BoundedText("status" as StaticString)), endpoint: endpoint,
      timeoutMilliseconds: 10_000)
    var statistics = LatencyStatistics()
    for _ in 0..<50 {
      let outcome = try proof.run(isRemembered: true)
      guard outcome.verdict.status == .accepted else { throw Failure(.denied, outcome.verdict.status.name) }
      statistics.record(outcome.timing)
    }
    story.heading("Where the time of a proof goes, 50 proofs")
    for line in statistics.table { story.tell("  \(line)") }
    let median = statistics.total.valueAtPercentile(50)
    story.expect(
      "a whole proof within the budget of 100 ms", "yes", median <= 100_000 ? "yes" : "no",
      detail: "median \(milliseconds(median)) ms")
  }

  private mutating func checkAudit() throws(Failure) {
    story.heading("What the device wrote down")
    let ending = try ChildProcess.run([
      try Playground.program, "device", "audit", "--verify", "--dir", playground.path("device"),
    ])
    story.expect("the audit chain", "whole", ending.status == 0 ? "whole" : "broken")
  }
}

extension ChildProcess.Ending {
  /// The status in the object that `prove --json` printed; otherwise the exit status.
  var statusName: String { text(of: "status") ?? exit }

  /// The exit status as text.
  var exit: String { status.map { "exit \($0)" } ?? "killed" }

  /// Returns the first member with this name and a text value in the printed object.
  func text(of member: String) -> String? {
    guard let start = output.firstRange(of: "\"\(member)\":\"") else { return nil }
    return String(output[start.upperBound...].prefix { $0 != "\"" })
  }
}

/// A transcript of the demonstration, printed line by line. It records whether every step had the expected result.
struct Story {
  private(set) var isTrue = true
  /// Whether nothing is printed; ``json`` has every line.
  let isSilent: Bool
  private var lines: [JSONValue] = []

  init(isSilent: Bool) { self.isSilent = isSilent }

  func heading(_ text: String) {
    tell("")
    tell(text)
  }

  /// Prints a line that is only for people.
  func tell(_ text: String) { if !isSilent { Console.result(text) } }

  /// Records a step that succeeded; otherwise an error would have been thrown.
  mutating func step(_ text: String, _ detail: String) {
    lines.append(.object([("line", .string(text)), ("detail", .string(detail))]))
    tell("  \(text.padded(54))\(detail)")
  }

  /// Records a step whose result must be `expected`.
  mutating func expect(_ text: String, _ expected: String, _ actual: String, detail: String = "") {
    let holds = expected == actual
    if !holds { isTrue = false }
    lines.append(
      .object([
        ("line", .string(text)), ("expected", .string(expected)), ("actual", .string(actual)), ("holds", .bool(holds)),
        ("detail", .string(detail)),
      ]))
    guard !isSilent else { return }
    let outcome = holds ? expected : "\(actual), but it must be: \(expected)"
    Console.result("\(text.padded(54))\(outcome)\(detail.isEmpty ? "" : ", \(detail)")", after: mark(holds) + " ")
  }

  /// The whole transcript as one object.
  var json: JSONValue { .object([("holds", .bool(isTrue)), ("lines", .array(lines))]) }

  private func mark(_ holds: Bool) -> String {
    guard Console.hasColour else { return holds ? "✓" : "✗" }
    return holds ? "\u{1b}[32m✓\u{1b}[0m" : "\u{1b}[31m✗\u{1b}[0m"
  }
}
