import ArgumentParser
import HoldfastJSON
import HoldfastTransport

struct Doctor: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Say what is missing for a connection, and how to mend it.",
    discussion: """
      Without arguments, it looks at this host's Bluetooth. With an endpoint, it looks at what that endpoint needs, connects, \
      and waits for a device's challenge; nothing is proved. With --state, it looks at a prover's enrolments: their files, \
      their expiry, this host's clock, and whether app and host are as they were; together with an endpoint also at whether the \
      device that answers there is enrolled. With --dir, it looks at a device's folder: its files, policy, issuers and clock. \
      Exit status 0 when nothing that is needed is missing, 69 when something is, 77 when it is a permission.
      """,
    examples: [
      "holdfast doctor",
      "holdfast doctor rfcomm:00:1A:7D:DA:71:13,channel=5",
      "holdfast doctor --state phone",
      "holdfast doctor unix:/run/lock.sock --state phone",
      "holdfast doctor --dir lock",
    ])

  @Argument(help: "What is to be reached, such as rfcomm:00:1A:7D:DA:71:13,channel=5.")
  var endpoint: String?

  @Option(help: "A prover's state folder, which enroll filled.", completion: .directory)
  var state: String?

  @Option(help: "A device's folder.", completion: .directory)
  var dir: String?

  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var output: OutputOptions

  /// With --state, it measures as prove does.
  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let timeoutMilliseconds = try waiting.milliseconds()
    let endpoint = try endpoint.map { text throws(Failure) in try Endpoint(peerArgument: text) }
    var texts: [FindingText] = []
    var answering: ConnectionAttempt?
    if endpoint != nil || state == nil && dir == nil {
      let diagnosis = try examine(endpoint, timeoutMilliseconds)
      let adapter = diagnosis.adapter.map { "hci\($0)" }
      texts = diagnosis.findings.map { FindingText($0, adapter: adapter, endpoint: endpoint) }
      for case .connection(let attempt) in diagnosis.findings.map(\.topic) { answering = attempt }
    }
    if let state { texts += StateDiagnosis(ProverFolder(path: state)).checks(of: answering) }
    if let dir { texts += deviceChecks(dir) }
    try report(texts)
  }

  private func examine(_ endpoint: Endpoint?, _ timeoutMilliseconds: Int) throws(Failure) -> Diagnosis {
    var facts: HostFacts?
    if endpoint == nil || endpoint?.port != nil {
      do throws(BluetoothError) { facts = try HostFacts.gather() } catch { throw Failure(error, adapter: nil) }
    }
    let host = Diagnosis(facts, for: endpoint, nil)
    // Where this host lacks something, a connection would only fail for that reason.
    guard let endpoint, host.state == .ok else { return host }
    if Console.isTerminal { Console.note("connecting to \(endpoint)") }
    return Diagnosis(facts, for: endpoint, ConnectionAttempt(to: endpoint, timeoutMilliseconds: timeoutMilliseconds))
  }

  private func report(_ texts: [FindingText]) throws(Failure) {
    let failure: Failure? =
      if texts.contains(where: { $0.isOf(.missing) }) {
        Failure(.unavailable, "something that is needed is missing")
      } else if texts.contains(where: { $0.isOf(.forbidden) }) {
        Failure(.noPermission, "a permission is missing")
      } else {
        nil
      }
    if output.json {
      Console.result(
        .object([
          ("checks", .array(texts.map(\.json))), ("exit", .integer(UInt64(failure?.status.rawValue ?? 0))),
        ]))
    } else {
      for line in texts.flatMap(\.lines) { Console.result(line) }
    }
    if let failure { throw failure.afterResult() }
  }
}
