import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement
import HoldfastProver

struct Explain: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Show which components changed since the baseline, and what to do about it.",
    discussion: "The exit status is 0 if nothing changed, and 1 if something did.",
    examples: [
      "holdfast explain --state phone",
      "holdfast explain --state phone --json",
      "holdfast explain --state phone --device lock.json",
    ])

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(
    help:
      "Check only the baseline for this device, given by its id or its descriptor. By default, the baselines for all enrolled devices.",
    completion: .file())
  var device: String?

  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let all = try reading(state) { (prover) throws(ProverError) in try prover.explain(device: id) }
    report(all)
    if let failure = all.flatMap({ $0.changes.entries }).lazy.compactMap(\.failure).first {
      throw failure.afterResult()
    }
    let changed = Set(all.flatMap { $0.changes.changed.map { $0.id.description } })
    guard changed.isEmpty else {
      throw Failure(
        .denied, "\(changed.count) of the components changed since the baseline",
        hint: "if you know why, enrol again; if not, stop using this host until you do"
      ).afterResult()
    }
  }

  /// Reports the baselines. If there are several, each follows the device that it is for.
  private func report(_ all: [(device: DeviceID, changes: ComponentChanges)]) {
    if output.json {
      let objects = all.map { device, changes in
        let changes = changes.json { Failure($0).message }
        return JSONValue.object([("device_id", .string(hexadecimal(device)))] + (changes.members ?? []))
      }
      let union = Set(all.flatMap { $0.changes.changed.map { $0.id.description } }).sorted()
      Console.result(
        objects.count == 1
          ? objects[0]
          : .object([("changed", .array(union.map { .string($0) })), ("devices", .array(objects))]))
      return
    }
    for (device, changes) in all {
      if all.count > 1 { Console.result("baseline for device \(hexadecimal(device)):") }
      changes.report()
    }
  }
}

extension ComponentChanges {
  /// Prints one line for each component and, below each changed one, the causes and the advice.
  fileprivate func report() {
    for entry in entries {
      Console.result("\(entry.id): \(entry.stateText)")
      guard entry.state == .changed else { continue }
      let explanation = explanation(of: entry)
      for cause in explanation.causes { Console.result("  possible cause: \(cause.text)") }
      Console.result("  \(explanation.advice.text)")
    }
    for finding in sortedFindings { Console.result("now: \(finding.text)") }
    if entries.allSatisfy({ $0.state == .unchanged }) { Console.result("nothing changed since the baseline") }
  }
}

extension ComponentChanges.Entry {
  /// The reason why the component could not be measured.
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
