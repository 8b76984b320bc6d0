import ArgumentParser
import HoldfastJSON
import HoldfastTransport

struct Doctor: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Say what is missing for a connection, and how to mend it.",
    discussion: """
      Without an endpoint, it looks at this host's Bluetooth. With one, it looks at what that endpoint needs, connects, and \
      waits for a device's challenge; nothing is proved. Exit status 0 when nothing that is needed is missing, 69 when \
      something is, 77 when it is a permission.
      """,
    examples: [
      "holdfast doctor",
      "holdfast doctor rfcomm:00:1A:7D:DA:71:13,channel=5",
    ])

  @Argument(help: "What is to be reached, such as rfcomm:00:1A:7D:DA:71:13,channel=5.")
  var endpoint: String?

  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let timeoutMilliseconds = try waiting.milliseconds()
    let endpoint = try endpoint.map { text throws(Failure) in try Endpoint(peerArgument: text) }
    let diagnosis = try examine(endpoint, timeoutMilliseconds)
    report(diagnosis, endpoint)
    switch diagnosis.state {
    case .ok, .note: return
    case .missing: throw Failure(.unavailable, "something that is needed is missing").afterResult()
    case .forbidden: throw Failure(.noPermission, "a permission is missing").afterResult()
    }
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

  private func report(_ diagnosis: Diagnosis, _ endpoint: Endpoint?) {
    let adapter = diagnosis.adapter.map { "hci\($0)" }
    let texts = diagnosis.findings.map { FindingText($0, adapter: adapter, endpoint: endpoint) }
    if output.json { return Console.result(.object([("checks", .array(texts.map(\.json)))])) }
    for line in texts.flatMap(\.lines) { Console.result(line) }
  }
}
