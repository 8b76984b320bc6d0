import HoldfastFormats
import HoldfastProver

/// The kind of a warning, for programs. Like those of ``FailureCode``, numbers and identifiers stay the same; a warning changes no
/// exit status. `holdfast help errors` prints the table, and a test compares `docs/errors.md` with it.
package enum WarningCode: UInt16, CaseIterable, Sendable {
  /// Each warning without a line of its own.
  case general = 900
  case requestNumberDamaged = 901
  case requestNumberUnwritten = 902
  case requestNumberUnrecorded = 903
  case tokenUnrecorded = 904
  case postureWarned = 905
  case postureRulesOutdated = 906
  case offlineLimitNear = 907
  case notCompliant = 908
  case clockBehind = 909
  case timeUnrecorded = 910
  case anotherIssuerKey = 911
  case weakHost = 912
  case unauthenticatedAnswer = 913
  case notSynchronised = 914
  case nothingToWipe = 915
  case otherFilesStay = 916
  case postureWipes = 917

  /// The line of the table.
  package var row: (identifier: String, reason: String, advice: String) {
    switch self {
    case .general:
      ("warning", "the message says what", "the message or a hint says what to do")
    case .requestNumberDamaged:
      (
        "request-number-damaged", "the file with the last request number is damaged",
        "nothing: numbers follow the clock"
      )
    case .requestNumberUnwritten:
      ("request-number-unwritten", "the last request number cannot be written", "make the state folder writable")
    case .requestNumberUnrecorded:
      ("request-number-unrecorded", "the device's number cannot be recorded", "make the state folder writable")
    case .tokenUnrecorded:
      ("token-unrecorded", "that the device has the token cannot be recorded", "make the state folder writable")
    case .postureWarned:
      ("posture-warned", "the posture rules warn of this host", "holdfast posture shows why")
    case .postureRulesOutdated:
      ("posture-rules-outdated", "newer posture rules should be installed by now", "ask their issuer for newer ones")
    case .offlineLimitNear:
      ("offline-limit-near", "the last tenth of the time for being offline has begun", "enrol again with --replace")
    case .notCompliant:
      ("version-not-compliant", "a version does not comply with a rule that only warns", "update it")
    case .clockBehind:
      ("clock-behind", "this host's clock is behind a time that has been", "set the clock")
    case .timeUnrecorded:
      ("time-unrecorded", "the present time cannot be recorded", "make the state folder writable")
    case .anotherIssuerKey:
      ("another-issuer-key", "new terms have another issuer's key", "ask the service's operator whether it is right")
    case .weakHost:
      ("weak-host", "only device.secret distinguishes this host", "protect that file, or enrol outside of a container")
    case .unauthenticatedAnswer:
      (
        "unauthenticated-answer", "nothing authenticates the answer to a compatibility round",
        "use sessions if possible"
      )
    case .notSynchronised:
      ("not-synchronised", "the authenticator could not be synchronised", "holdfast otp sync repeats it")
    case .nothingToWipe:
      ("nothing-to-wipe", "what was to be removed is not there", "check the name")
    case .otherFilesStay:
      ("other-files-stay", "files that are not Holdfast's stay in the folder", "remove them by hand")
    case .postureWipes:
      (
        "posture-wipes", "the posture rules demand that the next enrolment or proof removes all enrolments",
        "correct the findings before"
      )
    }
  }

  /// The table as lines of Markdown.
  package static var markdown: String {
    let lines = allCases.map { code in
      "| \(code.rawValue) | `\(code.row.identifier)` | \(code.row.reason) | \(code.row.advice) |"
    }
    return (["| number | identifier | reason | advice |", "| --- | --- | --- | --- |"] + lines).joined(separator: "\n")
      + "\n"
  }

  /// A warning as it stands in the output of `--json`, in the array `warnings`.
  package func json(_ text: String) -> JSONValue {
    .object([
      ("warning", .string(text)), ("code", .string(row.identifier)), ("number", .integer(UInt64(rawValue))),
    ])
  }
}

extension ProverWarning {
  /// The kind of the warning.
  var code: WarningCode {
    switch self {
    case .damagedRequestNumber: .requestNumberDamaged
    case .unwrittenRequestNumber: .requestNumberUnwritten
    case .unrecordedRequestNumber: .requestNumberUnrecorded
    case .unrecordedToken: .tokenUnrecorded
    case .posture: .postureWarned
    case .outdatedPostureRules: .postureRulesOutdated
    case .offlineLimitNear: .offlineLimitNear
    case .notCompliant: .notCompliant
    case .clockBehind: .clockBehind
    case .unrecordedTime: .timeUnrecorded
    case .anotherIssuerKey: .anotherIssuerKey
    }
  }
}
