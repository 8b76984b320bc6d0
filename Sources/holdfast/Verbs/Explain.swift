import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastMeasurement

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
    let folder = ProverFolder(path: state)
    let enrolments = try chosenEnrolments(in: folder)
    var all: [(device: DeviceID, changes: ComponentChanges)] = []
    var measurer = Measurer()
    for enrolment in enrolments {
      do throws(MeasurementError) {
        let changes = try measurer.changes(since: enrolment.fingerprints, for: try enrolment.decodedConfiguration())
        all.append((enrolment.descriptor.deviceID, changes))
      } catch { throw Failure(error) }
    }
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

  /// Reads the enrolments to compare with; each must be intact.
  private func chosenEnrolments(in folder: ProverFolder) throws(Failure) -> [Enrolment] {
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    return try reading(folder) { () throws(StateFolderFault) in
      let entries = if let id { [try folder.requiredEntry(of: id)] } else { try folder.entries() }
      guard !entries.isEmpty else { throw try folder.nothingEnrolled() }
      var enrolments: [Enrolment] = []
      for entry in entries {
        let enrolment = try entry.load()
        guard enrolment.hasOwnConfiguration else {
          throw entry.folder.damaged(EnrolmentFolder.configurationName)
        }
        enrolments.append(enrolment)
      }
      return enrolments
    }
  }

  /// Reports the baselines. If there are several, each follows the device that it is for.
  private func report(_ all: [(device: DeviceID, changes: ComponentChanges)]) {
    if output.json {
      let objects = all.map { device, changes in
        JSONValue.object([("device_id", .string(hexadecimal(device)))] + (changes.json.members ?? []))
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
  fileprivate var changed: [Entry] { entries.filter { $0.state == .changed } }

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
