import HoldfastFormats
import HoldfastMeasurement

extension ComponentChanges {
  /// The components that differ from the baseline.
  package var changed: [Entry] { entries.filter { $0.state == .changed } }

  /// The present findings in a fixed order.
  package var sortedFindings: [Finding] { Finding.allCases.filter(findings.contains) }

  /// The causes of a changed component, and the advice about it.
  package func explanation(of entry: Entry) -> ChangeExplanation {
    ChangeExplanation(
      of: entry.id.description, changed: Set(changed.map { $0.id.description }), findings: findings)
  }

  /// Returns the changes as an object with the members `changed`, `components` and `findings`. It has no digests.
  ///
  /// - Parameter text: returns the text for a component that could not be measured.
  package func json(_ text: (MeasurementError) -> String) -> JSONValue {
    .object([
      ("changed", .array(changed.map { .string($0.id.description) })),
      ("components", .array(entries.map { json(of: $0, text) })),
      ("findings", .array(sortedFindings.map { .string($0.identifier) })),
    ])
  }

  private func json(of entry: Entry, _ text: (MeasurementError) -> String) -> JSONValue {
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
      members.append(("error", .string(text(error))))
    }
    return .object(members)
  }
}
