import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct ShowStatus: Verb {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show the enrolments of a prover's state folder, and when they expire.",
    discussion: """
      The command makes no connection. Only the device can read a token, so it shows the claims that the issuer reported \
      when it issued the token; nothing authenticates this report. An enrolment by an older version shows no claims. The \
      exit status is 0 even if a token has expired, and 2 if an enrolment is damaged or no device is enrolled.
      """,
    examples: [
      "holdfast status --state phone",
      "holdfast status --state phone --device lock.json --json",
    ])

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(help: "Show only this device, given by its id or its descriptor.", completion: .file())
  var device: String?

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let folder = ProverFolder(path: state)
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let entries = try reading(folder) { () throws(StateFolderFault) in
      if let id { return [try folder.requiredEntry(of: id)] }
      let entries = try folder.entries()
      guard !entries.isEmpty else { throw try folder.nothingEnrolled() }
      return entries
    }
    let now = SystemClock().unixSeconds()
    let states = entries.map { EnrolmentState($0, now: now) }
    if output.json {
      Console.result(.object([("devices", .array(states.map(json(of:))))]))
    } else {
      for state in states { for line in lines(of: state) { Console.result(line) } }
    }
    for state in states {
      guard let failure = failure(of: state) else { continue }
      throw failure.afterResult()
    }
  }

  private func failure(of entry: EnrolmentState) -> Failure? {
    guard case .failure(let fault) = entry.enrolment else { return nil }
    return Failure(fault, folder: state)
  }

  private func lines(of entry: EnrolmentState) -> [String] {
    var lines = ["device \(hexadecimal(entry.entry.device)): \(entry.summary)"]
    if case .success(let enrolment) = entry.enrolment {
      lines.append("  key id     \(hexadecimal(enrolment.descriptor.keyID))")
    }
    for (title, value) in entry.report?.lines ?? [] {
      lines.append("  \(title + String(repeating: " ", count: 11 - title.count))\(value)")
    }
    if entry.entry.isOfOldLayout {
      lines.append("  files      in the state folder itself, where older versions put them")
    }
    return lines
  }

  private func json(of entry: EnrolmentState) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("device_id", .string(hexadecimal(entry.entry.device))), ("state", .string(entry.validity.rawValue)),
      ("seconds_left", entry.secondsLeft.map { .integer($0) } ?? .null),
      ("old_layout", .bool(entry.entry.isOfOldLayout)),
    ]
    if case .success(let enrolment) = entry.enrolment {
      members += [
        ("kid", .string(hexadecimal(enrolment.descriptor.keyID))),
        ("encoding", .string(enrolment.encoding == .jose ? "jose" : "cose")),
        ("token_bytes", .integer(UInt64(enrolment.token.count))),
        ("remembered", .bool(entry.entry.folder.isRemembered(enrolment.token))),
      ]
    }
    members += entry.report?.json.members ?? IssuanceReport.absent
    if let failure = failure(of: entry) { members.append(("error", .string(failure.message))) }
    return .object(members)
  }
}

extension EnrolmentState {
  /// The state and the remaining validity in a few words.
  var summary: String {
    switch validity {
    case .valid: "valid for \((secondsLeft ?? 0).duration)"
    case .expired: "expired"
    case .unknown:
      report == nil
        ? "enrolled by an older version, which did not record the expiry"
        : "unknown validity, because there is no clock"
    case .damaged: "damaged"
    case .unreadable: "no permission"
    }
  }
}

extension IssuanceReport {
  /// The members of a report that is absent.
  fileprivate static var absent: [(String, JSONValue)] { names.map { ($0, .null) } }
}

extension UInt64 {
  /// The number of seconds in the largest unit of which there are at least two, rounded down.
  fileprivate var duration: String {
    for (unit, seconds) in [("days", 86_400 as UInt64), ("hours", 3600), ("minutes", 60)] where self >= 2 * seconds {
      return "\(self / seconds) \(unit)"
    }
    return "\(self) s"
  }
}
