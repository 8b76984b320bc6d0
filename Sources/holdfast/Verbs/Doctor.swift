import ArgumentParser
import Glibc
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport

struct Doctor: Verb {
  static let configuration = CommandConfiguration(
    abstract: "Diagnose a connection, an enrolment or a device, and print the commands that fix it.",
    discussion: """
      Without arguments, doctor checks this host's Bluetooth. With an endpoint, it checks the requirements of that endpoint, \
      connects, and waits for a device's challenge; it proves nothing. With --state, it checks a prover's enrolments: their \
      files, their expiry, this host's clock, and whether app and host are unchanged; with an endpoint too, it also checks that \
      the device that answers there is enrolled. With --dir, it checks a device's folder: its files, policy, issuers and \
      clock. The exit status is 0 if nothing that is needed is missing, 69 if something is, and 77 if it is a permission.
      """,
    examples: [
      "holdfast doctor",
      "holdfast doctor rfcomm:00:1A:7D:DA:71:13,channel=5",
      "holdfast doctor --state phone",
      "holdfast doctor unix:/run/lock.sock --state phone",
      "holdfast doctor --dir lock",
    ])

  @Argument(help: "The endpoint to check, such as rfcomm:00:1A:7D:DA:71:13,channel=5.")
  var endpoint: String?

  @Option(help: "A prover's state folder, which enroll filled.", completion: .directory)
  var state: String?

  @Option(help: "A device's folder.", completion: .directory)
  var dir: String?

  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var output: OutputOptions

  /// Whether this process measures itself: with `--state`, it measures as `prove` does.
  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let timeoutMilliseconds = try waiting.milliseconds()
    let endpoint = try endpoint.map { text throws(Failure) in try Endpoint(peerArgument: text) }
    var texts: [FindingText] = []
    var answering: ConnectionAttempt?
    if endpoint != nil || state == nil && dir == nil {
      let diagnosis = try examine(endpoint, timeoutMilliseconds)
      let adapter = diagnosis.adapter.map { "hci\($0)" }
      texts = diagnosis.diagnostics.map { FindingText($0, adapter: adapter, endpoint: endpoint) }
      for case .connection(let attempt) in diagnosis.diagnostics.map(\.topic) { answering = attempt }
    }
    if let state { texts += StateDiagnosis(ProverFolder(path: state)).checks(of: answering) }
    if let dir { texts += deviceChecks(dir) }
    try report(texts)
  }

  private func examine(_ endpoint: Endpoint?, _ timeoutMilliseconds: Int) throws(Failure) -> Diagnosis {
    var facts: HostFacts?
    if endpoint == nil || endpoint?.scheme.radio != nil {
      do throws(BluetoothError) { facts = try HostFacts.gather() } catch { throw Failure(error, adapter: nil) }
    }
    let host = Diagnosis(facts, for: endpoint, nil)
    // If this host lacks something, a connection would only fail for that reason.
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

/// Checks whether a device's folder is ready to be served: its files, its policy, its issuers and its clock.
func deviceChecks(_ path: String) -> [FindingText] {
  let device: DeviceFolder
  let summary: LedgerSummary
  let issuerCount: Int
  let policy: PolicyReading
  do throws(Failure) {
    device = try DeviceFolder.opened(path)
    let ledger = try device.ledger()
    policy = try device.policyReading(ledger)
    summary = try recording { () throws(LedgerFault) in try ledger.summary() }
    issuerCount = try recording { () throws(LedgerFault) in try ledger.issuers() }.count
  } catch { return [FindingText("device-folder", error)] }
  return [
    FindingText(
      "device-folder", .ok,
      "\(path) contains device \(hexadecimal(device.descriptor.deviceID)), and its ledger can be opened"),
    policyCheck(device, policy),
    issuerCount == 0
      ? FindingText(
        "issuers", .missing, "the device trusts no issuer, so it accepts no token",
        hint: "holdfast service show --json prints the key for holdfast device trust --dir \(path.shellWord)")
      : FindingText("issuers", .ok, "the device trusts \(issuerCount == 1 ? "one issuer" : "\(issuerCount) issuers")"),
    clockCheck(floor: summary.clockFloor, path),
  ]
}

private func policyCheck(_ device: DeviceFolder, _ policy: PolicyReading) -> FindingText {
  guard policy.fault == nil, !policy.policy.commands.isEmpty else {
    return FindingText(
      "policy", .missing, "the policy \(policy.summary)",
      hint:
        "correct \(device.path.shellWord)/\(policy.file.rawValue); holdfast device policy --dir \(device.path.shellWord) checks it"
    )
  }
  return FindingText("policy", .ok, "the policy allows \(policy.summary)")
}

/// Checks the clock. The device takes the later of its floor and the host's clock, so its time stands still while the
/// clock is before the floor.
private func clockCheck(floor: UInt64, _ path: String) -> FindingText {
  let text = Timestamp(unixSeconds: floor)
  guard let now = SystemClock().unixSeconds(), now >= floor else {
    return FindingText(
      "clock", .note, "this host's clock is before the device's floor, \(text)",
      hint: "set the clock; if the floor is wrong: holdfast device floor --dir \(path.shellWord)")
  }
  return FindingText("clock", .ok, "this host's clock is after the device's floor, \(text)")
}

/// The checks of whether a prover's state folder is ready for a proof.
struct StateDiagnosis {
  private let folder: ProverFolder
  private let now = SystemClock().unixSeconds()

  /// The remaining validity of a token below which the check adds a note, in seconds.
  private static let soonSeconds: UInt64 = 7 * 86_400

  init(_ folder: ProverFolder) { self.folder = folder }

  /// Runs all checks. `answering` is the result of a connection to an endpoint, if one was given.
  func checks(of answering: ConnectionAttempt?) -> [FindingText] {
    let entries: [ProverFolder.Entry]
    do throws(StateFolderFault) {
      entries = try folder.entries()
      guard !entries.isEmpty else { throw try folder.nothingEnrolled() }
    } catch { return [FindingText("state-folder", Failure(error, folder: folder.path))] }
    var checks = [folderCheck(entries.count), keyCheck()]
    let measurement: LiveMeasurement?
    do throws(MeasurementError) {
      var measurer = Measurer(keys: .app)
      measurement = try measurer.measure()
    } catch {
      checks.append(FindingText("measurement", Failure(error)))
      measurement = nil
    }
    for entry in entries { checks += self.checks(of: entry, measurement) }
    if case .device(let id)? = answering { checks.append(answerCheck(id, entries)) }
    return checks
  }

  private func folderCheck(_ count: Int) -> FindingText {
    let devices = count == 1 ? "one device" : "\(count) devices"
    guard unsafe access(folder.path, W_OK) == 0 else {
      return FindingText(
        "state-folder", .note,
        "\(folder.path) has enrolments for \(devices), but cannot be written, so each proof sends the whole token")
    }
    return FindingText("state-folder", .ok, "\(folder.path) has enrolments for \(devices)")
  }

  private func keyCheck() -> FindingText {
    ProofKeys.app.isDefault
      ? FindingText(
        "proof-key", .note, "this build contains the default measurement proof key, which everybody knows",
        hint: "for a release, put your own mpk.key into the root of the package, and build again")
      : FindingText("proof-key", .ok, "this build contains a measurement proof key for its release")
  }

  private func checks(of entry: ProverFolder.Entry, _ measurement: LiveMeasurement?) -> [FindingText] {
    let state = EnrolmentState(entry, now: now)
    let name = "device \(hexadecimal(entry.device))"
    let enrolment: Enrolment
    switch state.enrolment {
    case .success(let whole): enrolment = whole
    case .failure(let fault): return [FindingText("enrolment", Failure(fault, folder: folder.path).of(name))]
    }
    var checks = [
      FindingText("enrolment", .ok, "\(name), key \(hexadecimal(enrolment.descriptor.keyID)): the files are complete"),
      tokenCheck(state, name),
    ]
    if let measurement { checks.append(hostCheck(enrolment, measurement, name)) }
    return checks
  }

  private func tokenCheck(_ state: EnrolmentState, _ name: String) -> FindingText {
    let again = "holdfast enroll --replace --state \(folder.path.shellWord) …"
    guard let now else {
      return FindingText("clock", .missing, "\(name): this host's clock is before 1970", hint: "set the clock")
    }
    guard let report = state.report else {
      return FindingText(
        "token", .note, "\(name): it was enrolled by an older version, which did not record the expiry",
        hint: "to record it: \(again)")
    }
    let expiry = Timestamp(unixSeconds: report.expires)
    if state.validity == .expired {
      return FindingText("token", .missing, "\(name): the token expired at \(expiry)", hint: again)
    }
    if now < report.issued {
      return FindingText(
        "clock", .missing,
        "\(name): this host's clock says \(Timestamp(unixSeconds: now)), but the token was issued at "
          + "\(Timestamp(unixSeconds: report.issued))",
        hint: "set the clock, or check the issuer's clock")
    }
    let isSoon = report.expires - now < Self.soonSeconds
    return FindingText(
      "token", isSoon ? .note : .ok, "\(name): the token is \(state.summary), until \(expiry)",
      hint: isSoon ? again : nil)
  }

  private func hostCheck(_ enrolment: Enrolment, _ measurement: LiveMeasurement, _ name: String) -> FindingText {
    let changed: Int
    do throws(MeasurementError) {
      var measurer = Measurer(keys: .app)
      let configuration = try enrolment.decodedConfiguration()
      guard try ProofKeys.app.measurementProofKey(named: configuration.mpkID) != nil else { throw .unknownKey }
      changed = try measurer.changedComponentCount(of: measurement, since: enrolment.fingerprints, for: configuration)
    } catch { return FindingText("measurement", Failure(error).of(name)) }
    return changed == 0
      ? FindingText("measurement", .ok, "\(name): app and host are unchanged since they were enrolled")
      : FindingText(
        "measurement", .missing, "\(name): \(changed) of the components changed since the baseline",
        hint: "holdfast explain --state \(folder.path.shellWord) shows which")
  }

  private func answerCheck(_ id: String, _ entries: [ProverFolder.Entry]) -> FindingText {
    entries.contains { hexadecimal($0.device) == id }
      ? FindingText("answering-device", .ok, "the device that answers, \(id), is enrolled")
      : FindingText(
        "answering-device", .missing, "the device that answers, \(id), is not enrolled in \(folder.path)",
        hint: "is it the right address? holdfast status --state \(folder.path.shellWord) lists the enrolled ones")
  }
}

extension Failure {
  /// Returns the same failure for one of several subjects.
  fileprivate func of(_ subject: String) -> Failure { Failure(status, "\(subject): \(message)", hint: hint) }
}
