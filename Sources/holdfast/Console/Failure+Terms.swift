import HoldfastCore
import HoldfastFormats
import HoldfastProver

extension Failure {
  /// Creates the failure for a proof that the prover itself refuses.
  ///
  /// - Parameter folder: The path of the state folder.
  init(_ refusal: ProofRefusal, folder: String) {
    let enroll = "holdfast enroll --device DESCRIPTOR --service SERVICE --state \(folder.shellWord)"
    switch refusal {
    case .offlineLimit(let device, let until):
      self.init(
        code: .offlineLimit,
        "offlineLimit: the time for which the issuer allows to be offline ended on \(Timestamp(unixSeconds: until)) for device "
          + "\(hexadecimal(device)); nothing was sent",
        hint: "enrol again: \(enroll) --replace; if this host's clock is wrong, set it first")
    case .notCompliant(let device, let finding):
      self.init(
        code: .notCompliant, "notCompliant, for device \(hexadecimal(device)): \(finding.text)",
        hint: "update it, or ask the operator of the issuer; then enrol again: \(enroll) --replace")
    case .wiped(let device, let finding):
      self.init(
        code: .enrolmentWiped,
        "wiped: the enrolment for device \(hexadecimal(device)) was removed, because \(finding.text)",
        hint: "update it, or ask the operator of the issuer; then enrol again: \(enroll)")
    }
  }
}

extension ComplianceFinding {
  /// The rule and the version, for people.
  var text: String {
    let subject =
      switch rule.subject {
      case .app: "the app"
      case .os: rule.system.map { "the operating system \($0.printable)" } ?? "the operating system"
      }
    let found = version.map { "is \($0.text)" } ?? "is not known"
    return "the issuer's terms require version \(rule.text) of \(subject), and this one \(found)"
  }
}

extension Console {
  /// Prints a warning about the terms of an enrolment.
  static func warnOfTerms(_ warning: ProverWarning) {
    switch warning {
    case .offlineLimitNear(let device, let limit):
      self.warning(
        "device \(hexadecimal(device)): the issuer allows to be offline until \(Timestamp(unixSeconds: limit.until)), for another "
          + "\(limit.secondsLeft.duration); enrol again with --replace before that", warning.code)
    case .notCompliant(let device, let finding):
      self.warning("device \(hexadecimal(device)): \(finding.text)", warning.code)
    case .clockBehind(let device, let clock, let latest):
      self.warning(
        "device \(hexadecimal(device)): this host's clock says \(Timestamp(unixSeconds: clock)), but it is at least "
          + "\(Timestamp(unixSeconds: latest)); the later time counts", warning.code)
    case .unrecordedTime(let fault):
      self.warning(
        "\(Failure(fault, folder: "").message); the present time was not recorded for the offline limit", warning.code)
    case .anotherIssuerKey(let device):
      self.warning(
        "device \(hexadecimal(device)): the new terms are signed with another key than the ones they replace",
        warning.code)
    case .damagedRequestNumber, .unwrittenRequestNumber, .unrecordedRequestNumber, .unrecordedToken, .posture,
      .outdatedPostureRules:
      break
    }
  }
}
