import Glibc
import HoldfastCore
import HoldfastKeys
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastText
import HoldfastTransport

/// Whether a prover's state folder is ready for a proof, one check after the other.
struct StateDiagnosis {
  private let folder: ProverFolder
  private let now = SystemClock().unixSeconds()

  /// A token that expires sooner than this is worth a note.
  private static let soonSeconds: UInt64 = 7 * 86_400

  init(_ folder: ProverFolder) { self.folder = folder }

  /// All checks. `answering` is what was met at an endpoint, where one was given.
  func checks(of answering: ConnectionAttempt?) -> [FindingText] {
    let entries: [ProverFolder.Entry]
    do throws(StateFolderFault) {
      entries = try folder.entries()
      guard !entries.isEmpty else { throw try folder.nothingEnrolled() }
    } catch { return [FindingText("state-folder", Failure(error, folder: folder.path))] }
    var checks = [folderCheck(entries.count), keyCheck()]
    let measurement: LiveMeasurement?
    do throws(Failure) { measurement = try Proof.measure() } catch {
      checks.append(FindingText("measurement", error))
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
        "\(folder.path) has enrolments for \(devices), and cannot be written: each proof sends the whole token")
    }
    return FindingText("state-folder", .ok, "\(folder.path) has enrolments for \(devices)")
  }

  private func keyCheck() -> FindingText {
    BuiltInKeys.isDevelopmentKey
      ? FindingText(
        "proof-key", .note, "this build has the development measurement proof key, which everybody knows",
        hint: "for a release, put your own mpk.key at the root of the package, and build again")
      : FindingText("proof-key", .ok, "this build has a measurement proof key of its release")
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
      FindingText("enrolment", .ok, "\(name), key \(hexadecimal(enrolment.descriptor.keyID)): the files are whole"),
      tokenCheck(state, name),
    ]
    if let measurement { checks.append(hostCheck(enrolment, measurement, name)) }
    return checks
  }

  private func tokenCheck(_ state: EnrolmentState, _ name: String) -> FindingText {
    let again = "holdfast enroll --replace --state \(folder.path.shellWord) …"
    guard let now else {
      return FindingText("clock", .missing, "\(name): this host's clock stands before 1970", hint: "set the clock")
    }
    guard let report = state.report else {
      return FindingText(
        "token", .note, "\(name): an older version enrolled it, and kept no expiry", hint: "to know it: \(again)")
    }
    let expiry = Timestamp(unixSeconds: report.expires)
    if state.validity == .expired {
      return FindingText("token", .missing, "\(name): the token expired at \(expiry)", hint: again)
    }
    if now < report.issued {
      return FindingText(
        "clock", .missing,
        "\(name): this host's clock says \(Timestamp(unixSeconds: now)), and the token was issued at "
          + "\(Timestamp(unixSeconds: report.issued))",
        hint: "set the clock, or look at the issuer's")
    }
    let isSoon = report.expires - now < Self.soonSeconds
    return FindingText(
      "token", isSoon ? .note : .ok, "\(name): the token is \(state.summary), until \(expiry)",
      hint: isSoon ? again : nil)
  }

  private func hostCheck(_ enrolment: Enrolment, _ measurement: LiveMeasurement, _ name: String) -> FindingText {
    let changed: Int
    do throws(MeasurementError) {
      var measurer = Measurer()
      let configuration = try enrolment.decodedConfiguration()
      guard try BuiltInKeys.key(named: configuration.mpkID) != nil else { throw .unknownKey }
      changed = try measurer.changedComponentCount(of: measurement, since: enrolment.fingerprints, for: configuration)
    } catch { return FindingText("measurement", Failure(error).of(name)) }
    return changed == 0
      ? FindingText("measurement", .ok, "\(name): app and host are as they were when they were enrolled")
      : FindingText(
        "measurement", .missing, "\(name): \(changed) of the components changed since the baseline",
        hint: "holdfast explain --state \(folder.path.shellWord) says which")
  }

  private func answerCheck(_ id: String, _ entries: [ProverFolder.Entry]) -> FindingText {
    entries.contains { hexadecimal($0.device) == id }
      ? FindingText("answering-device", .ok, "device \(id), which answers, is enrolled")
      : FindingText(
        "answering-device", .missing, "device \(id), which answers, is not enrolled in \(folder.path)",
        hint: "is it the right address? holdfast status --state \(folder.path.shellWord) lists the enrolled ones")
  }
}

extension Failure {
  /// The same, said of one of several things.
  fileprivate func of(_ subject: String) -> Failure { Failure(status, "\(subject): \(message)", hint: hint) }
}
