import ArgumentParser
import HoldfastCore
import HoldfastJSON
import HoldfastMeasurement

struct Explain: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Say which components changed since the baseline, and what to do.",
    discussion: "Exit status 0 when nothing changed, 1 when something did.",
    examples: [
      "holdfast explain --state phone",
      "holdfast explain --state phone --json",
    ])

  @Option(help: "The folder that enroll filled.", completion: .directory)
  var state: String

  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let folder = ProverFolder(path: state)
    let enrolment = try folder.load()
    guard enrolment.hasOwnConfiguration else { throw folder.damaged(ProverFolder.configurationName) }
    let changes: ComponentChanges
    do throws(MeasurementError) {
      var measurer = Measurer()
      changes = try measurer.changes(since: enrolment.fingerprints, for: try enrolment.decodedConfiguration())
    } catch { throw Failure(error) }
    if output.json { Console.result(changes.json) } else { changes.report() }
    if let failure = changes.entries.lazy.compactMap(\.failure).first { throw failure.afterResult() }
    guard changes.changed.isEmpty else {
      throw Failure(
        .denied, "\(changes.changed.count) of the components changed since the baseline",
        hint: "if you know why, enrol again; if you do not, stop using this host until you do"
      ).afterResult()
    }
  }
}

extension ComponentChanges {
  fileprivate var changed: [Entry] { entries.filter { $0.state == .changed } }

  /// One line for each component, and below those that changed why and what to do.
  fileprivate func report() {
    for entry in entries {
      Console.result("\(entry.id): \(entry.stateText)")
      guard entry.state == .changed else { continue }
      let explanation = explanation(of: entry)
      for cause in explanation.causes { Console.result("  perhaps \(cause.text)") }
      Console.result("  \(explanation.advice.text)")
    }
    for finding in sortedFindings { Console.result("now: \(finding.text)") }
    if entries.allSatisfy({ $0.state == .unchanged }) { Console.result("nothing changed since the baseline") }
  }

  fileprivate var json: JSONValue {
    .object([
      ("changed", .array(changed.map { .string($0.id.description) })),
      ("components", .array(entries.map(json(of:)))),
      ("findings", .array(sortedFindings.map { .string($0.identifier) })),
    ])
  }

  private func explanation(of entry: Entry) -> ChangeExplanation {
    ChangeExplanation(
      of: entry.id.description, changed: Set(changed.map { $0.id.description }), findings: findings)
  }

  private func json(of entry: Entry) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("id", .string(entry.id.description)), ("scope", .string(entry.isOfDevice ? "device" : "app")),
    ]
    switch entry.state {
    case .unchanged: members.append(("state", .string("unchanged")))
    case .changed:
      let explanation = explanation(of: entry)
      members.append(("state", .string("changed")))
      members.append(("causes", .array(explanation.causes.map { .string($0.rawValue) })))
      members.append(("advice", .string(explanation.advice.rawValue)))
    case .unmeasured(let error):
      members.append(("state", .string("unmeasured")))
      members.append(("error", .string(Failure(error).message)))
    }
    return .object(members)
  }

  private var sortedFindings: [Finding] { Finding.allCases.filter(findings.contains) }
}

extension ComponentChanges.Entry {
  /// Why it could not be measured.
  fileprivate var failure: Failure? {
    guard case .unmeasured(let error) = state else { return nil }
    return Failure(error)
  }

  fileprivate var stateText: String {
    switch state {
    case .unchanged: "unchanged"
    case .changed: "changed"
    case .unmeasured(let error): "could not be measured, \(Failure(error).message)"
    }
  }
}
