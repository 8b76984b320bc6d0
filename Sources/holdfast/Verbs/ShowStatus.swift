import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline
import HoldfastOpenSSL
import HoldfastProver

struct ShowStatus: Verb {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show the enrolments of a prover's state folder, and when they expire.",
    discussion: """
      Without --service, the command makes no connection. Only the device can read a token, so it shows the claims that the issuer reported \
      when it issued the token; nothing authenticates this report. An enrolment by an older version shows no claims. The \
      exit status is 0 even if a token has expired, and 2 if an enrolment is damaged or no device is enrolled. The time that \
      the issuer allows to be offline, rules about versions and settings come from its signed terms.

      With --service, the online service is asked whether each token is still good, and its present terms are stored: settings \
      change, and the time to be offline begins anew. Without a URL, this is the service that issued the token, or the one of the \
      last enrolment. The exit status is 1 if a token is no longer good; of several failures, the highest counts.
      """,
    examples: [
      "holdfast status --state phone",
      "holdfast status --state phone --device lock.json --json",
      "holdfast status --state phone --service",
      "holdfast status --state phone --service https://a.example",
    ])

  @Option(help: "The prover's state folder, which enroll filled.", completion: .directory)
  var state: String

  @Option(help: "Show only this device, given by its id or its descriptor.", completion: .file())
  var device: String?

  @Option(
    defaultAsFlag: ServiceCallOptions.kept,
    help: "Ask the online service: one to eight URLs with commas between them. Without a value, the service is known.")
  var service: String?

  @OptionGroup var calls: ServiceCallOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let id = try device.map { text throws(Failure) in try DeviceID(deviceArgument: text) }
    let standings = try ask(about: id)
    let states = try reading(state) { (prover) throws(ProverError) in try prover.status(device: id) }
    if output.json {
      Console.result(.object([("devices", .array(states.map { json(of: $0, standings) }))]))
    } else {
      for state in states { for line in lines(of: state, standings[state.device]) { Console.result(line) } }
    }
    let failures = states.compactMap { failure(of: $0) ?? standings[$0.device]?.failure(of: $0.device) }
    var worst = failures.first
    for failure in failures where failure.status.rawValue > worst?.status.rawValue ?? 0 { worst = failure }
    if let worst { throw worst.afterResult() }
  }

  /// The answer of a service about one token, or the reason why there is none.
  private enum Standing {
    case known(EnrolmentStanding)
    case unknown(Failure)

    /// The failure of a token that is not known to be good; nil for a good one.
    func failure(of device: DeviceID) -> Failure? {
      switch self {
      case .known(let standing) where standing.status == .valid: nil
      case .known(let standing):
        Failure(
          .denied, "the token for device \(hexadecimal(device)) is no longer good: \(standing.status.name)",
          hint: "enrol again, or ask the service's operator")
      case .unknown(let failure): failure
      }
    }

    var line: String {
      switch self {
      case .known(let standing): standing.status.name + (standing.changesSettings ? ", with new settings" : "")
      case .unknown(let failure): "unknown (\(failure.code.row.identifier)): \(failure.message)"
      }
    }

    var json: JSONValue {
      switch self {
      case .known(let standing):
        .object([
          ("status", .string(standing.status.name)), ("settings_changed", .bool(standing.changesSettings)),
        ])
      case .unknown(let failure):
        .object(
          [("status", .null), ("settings_changed", .bool(false))] + (failure.json.members ?? []))
      }
    }
  }

  /// Asks the service about each token, and stores its terms. One that is refused does not keep the others from being asked about,
  /// but a service that does not answer is asked once.
  private func ask(about id: DeviceID?) throws(Failure) -> [DeviceID: Standing] {
    guard let service else {
      try calls.checkUnused(without: "--service")
      return [:]
    }
    var standings: [DeviceID: Standing] = [:]
    var silent: [(issuer: ServiceAddress?, failure: Failure)] = []
    for entry in try reading(state, { (prover) throws(ProverError) in try prover.status(device: id) }) {
      guard case .success = entry.enrolment else { continue }
      if let known = silent.first(where: { $0.issuer == entry.service }) {
        standings[entry.device] = .unknown(known.failure)
        continue
      }
      do throws(Failure) { standings[entry.device] = try ask(service, about: entry) } catch {
        guard error.status != .usage else { throw error }
        standings[entry.device] = .unknown(error)
        if error.status == .unavailable { silent.append((entry.service, error)) }
      }
    }
    return standings
  }

  private func ask(_ service: String, about entry: EnrolmentState) throws(Failure) -> Standing {
    let exchange = calls.exchange(.enrolment, at: service, state: state, issuer: entry.service)
    let prover = Prover(state: state, keys: .app, warn: Console.warn)
    do { return .known(try prover.refresh(entry.device, exchange: exchange)) } catch {
      throw Failure(exchanging: error, in: state)
    }
  }

  private func json(of entry: EnrolmentState, _ standings: [DeviceID: Standing]) -> JSONValue {
    let value = entry.json { Failure($0, folder: state).message }
    guard let standing = standings[entry.device] else { return value }
    return .object((value.members ?? []) + [("service", standing.json)])
  }

  private func failure(of entry: EnrolmentState) -> Failure? {
    guard case .failure(let fault) = entry.enrolment else { return nil }
    return Failure(fault, folder: state)
  }

  private func lines(of entry: EnrolmentState, _ standing: Standing?) -> [String] {
    var lines = ["device \(hexadecimal(entry.entry.device)): \(entry.summary)"]
    if case .success(let enrolment) = entry.enrolment {
      lines.append("  key id     \(hexadecimal(enrolment.descriptor.keyID))")
    }
    for (title, value) in (entry.report?.lines ?? []) + entry.termsLines {
      lines.append("  \(title + String(repeating: " ", count: 11 - title.count))\(value)")
    }
    if let service = entry.service { lines.append("  address    \(service)") }
    if let standing { lines.append("  service    \(standing.line)") }
    if entry.entry.isOfOldLayout {
      lines.append("  files      in the state folder itself, where older versions put them")
    }
    return lines
  }
}

extension EnrolmentState {
  /// The state and the remaining validity in a few words.
  var summary: String {
    switch validity {
    case .valid: "valid for \((secondsLeft ?? 0).duration)"
    case .expired: "expired"
    case .offlineLimit: "offline for longer than the issuer allows: enrol again"
    case .notCompliant: "a version does not comply with the issuer's terms"
    case .unknown:
      report == nil
        ? "enrolled by an older version, which did not record the expiry"
        : "unknown validity, because there is no clock"
    case .damaged: "damaged"
    case .unreadable: "no permission"
    }
  }
}

extension EnrolmentState {
  /// The issuer's terms for a person, as titles and values.
  fileprivate var termsLines: [(title: String, value: String)] {
    var lines: [(title: String, value: String)] = []
    if let limit = offlineLimit {
      let left = limit.isReached ? "ended" : "\(limit.secondsLeft.duration) left, until"
      lines.append(("offline", "\(left) \(Timestamp(unixSeconds: limit.until))"))
    }
    if let settings { lines.append(("settings", "\(settings.kind.rawValue), \(settings.bytes.count) bytes")) }
    for finding in complianceFindings { lines.append(("compliance", "\(finding.action.rawValue): \(finding.text)")) }
    return lines
  }
}

extension UInt64 {
  /// The number of seconds in the largest unit of which there are at least two, rounded down.
  var duration: String {
    for (unit, seconds) in [("days", 86_400 as UInt64), ("hours", 3600), ("minutes", 60)] where self >= 2 * seconds {
      return "\(self / seconds) \(unit)"
    }
    return "\(self) s"
  }
}
