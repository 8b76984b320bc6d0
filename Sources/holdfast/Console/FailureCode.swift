/// The kind of a failure, for programs: a number and an identifier that stay the same, whatever the message says.
///
/// This is the only table. `holdfast help errors` prints it, and a test compares `docs/errors.md` and the article of DocC with it. A
/// number or an identifier that is no longer used stays in ``retired``.
package enum FailureCode: UInt16, CaseIterable, Sendable {
  // The general codes have the numbers of the exit statuses.
  case denied = 1
  case malformed = 2
  case impostor = 3
  case usage = 64
  case unavailable = 69
  case fault = 70
  case noPermission = 77

  case fileNotFound = 100
  case fileNoPermission = 101
  case fileReadOnly = 102
  case fileIsFolder = 103
  case fileNotFolder = 104
  case fileAnotherKind = 105
  case fileNotRegular = 106
  case fileSymbolicLink = 107
  case fileTooLarge = 108
  case fileTooOpen = 109
  case fileWrongOwner = 110
  case fileExists = 111
  case fileLocked = 112
  case diskFull = 113

  case stateIncomplete = 200
  case stateDamaged = 201
  case stateOtherVersion = 202
  case nothingEnrolled = 203
  case severalEnrolled = 204
  case notEnrolled = 205
  case anotherDevice = 206
  case anotherKey = 207
  case alreadyEnrolled = 208
  case baselineWaits = 209
  case noBaseline = 210
  case notAToken = 211
  case badTerms = 212
  case usedBaseline = 213
  case stateBusy = 214
  case noExchange = 215
  case offlineLimit = 216
  case notCompliant = 217
  case enrolmentWiped = 218
  case enrolmentReplaced = 219

  case unknownProofKey = 300
  case unknownComponent = 301
  case mountedOver = 302
  case unreadableSource = 303
  case hostSecretMissing = 304
  case hostSecretDamaged = 305

  case postureRefused = 400
  case postureRulesMalformed = 401
  case postureRulesContent = 402
  case postureRulesOfAnotherIssuer = 403
  case postureRulesNotAuthentic = 404
  case postureRulesNotNewer = 405
  case postureRulesNeedIssuer = 406
  case postureWiped = 407
  case postureStatementMalformed = 410
  case postureStatementOfAnotherKey = 411
  case postureStatementNotAuthentic = 412

  case serviceRefused = 500
  case requestRefused = 501
  case requestExpired = 502
  case requestWaits = 503
  case serviceUnreachable = 504
  case noTLS = 505
  case serviceNotNow = 506
  case wrongPin = 507
  case badCertificate = 508
  case badAuthorities = 509
  case notAService = 510
  case otherPins = 511
  case carrierMissing = 512
  case servicesDamaged = 513

  case sealRequestMalformed = 600
  case sealRequestNotAuthentic = 601
  case sealRequestForeign = 602
  case sealRequestExpired = 603
  case refusedByUser = 610
  case codeUsed = 611
  case codeTooOld = 612
  case noChallenge = 613
  case challengeExpired = 614

  case policyNotSigned = 700
  case policyOfAnotherKey = 701
  case policyNotAuthentic = 702
  case policyForAnotherDevice = 703
  case policyOutdated = 704
  case policyUnrecorded = 705

  /// The numbers that were used once. They are never used again.
  package static let retired: [UInt16] = []
}

/// The line of the table for a code.
package struct FailureRow: Sendable {
  /// The name of the code in the output of `--json`.
  package let identifier: String
  /// The exit status.
  package let status: ExitStatus
  /// The reason, in general; the message has the details.
  package let reason: String
  /// The advice.
  package let advice: String

  fileprivate init(_ identifier: String, _ status: ExitStatus, _ reason: String, _ advice: String) {
    (self.identifier, self.status, self.reason, self.advice) = (identifier, status, reason, advice)
  }
}

extension FailureCode {
  /// The general code of an exit status.
  package init(_ status: ExitStatus) {
    self =
      switch status {
      case .denied: .denied
      case .malformed: .malformed
      case .impostor: .impostor
      case .usage: .usage
      case .unavailable: .unavailable
      case .fault: .fault
      case .noPermission: .noPermission
      }
  }

  /// The line of the table.
  package var row: FailureRow {
    switch self {
    case .denied:
      .init("denied", .denied, "a policy or the other end refuses", "the message says which, and the hint what to do")
    case .malformed:
      .init(
        "malformed", .malformed, "input is malformed, or a check failed", "correct or restore what the message names")
    case .impostor:
      .init(
        "impostor", .impostor, "the other end did not prove its identity", "check the address; do not use the other end"
      )
    case .usage: .init("usage", .usage, "the arguments do not fit", "see holdfast help VERB")
    case .unavailable:
      .init(
        "unavailable", .unavailable, "the peer, the adapter or a lock is not available",
        "try again; holdfast doctor diagnoses connections")
    case .fault:
      .init(
        "fault", .fault, "this host failed: its disk, its clock or a library", "look at the host's log, and try again")
    case .noPermission: .init("no-permission", .noPermission, "a permission is missing", "run as the user that owns it")
    default: fileRow ?? proverRow ?? enrolmentRow ?? onlineRow ?? sealRow ?? policyRow ?? postureRow
    }
  }

  private var policyRow: FailureRow? {
    switch self {
    case .policyNotSigned:
      .init(
        "policy-not-signed", .malformed, "a device with a policy key has a policy that is not signed",
        "holdfast service device-policy signs one")
    case .policyOfAnotherKey:
      .init(
        "policy-of-another-key", .denied, "a policy was not signed with the device's policy key",
        "have the owner of the key sign it; device policy --key names another key")
    case .policyNotAuthentic:
      .init("policy-not-authentic", .denied, "the signature of a policy is wrong", "get the signed policy again")
    case .policyForAnotherDevice:
      .init(
        "policy-for-another-device", .denied, "a policy was signed for another device", "have one signed for this one")
    case .policyOutdated:
      .init(
        "policy-outdated", .denied, "a signed policy is older than the one that the device has taken",
        "policies never go back; sign it with a higher number")
    case .policyUnrecorded:
      .init(
        "policy-unrecorded", .fault, "a signed policy or its number cannot be written", "is the disk full or read-only?"
      )
    default: nil
    }
  }

  private var fileRow: FailureRow? {
    switch self {
    case .fileNotFound:
      .init("file-not-found", .malformed, "a file or folder does not exist", "check the name and the present folder")
    case .fileNoPermission:
      .init("file-no-permission", .noPermission, "the system refuses access to a file", "run as the user that owns it")
    case .fileReadOnly:
      .init("file-read-only", .fault, "a file system is read-only", "make it writable, or use another place")
    case .fileIsFolder: .init("file-is-folder", .malformed, "a file is needed, but it is a folder", "name a file in it")
    case .fileNotFolder:
      .init("file-not-folder", .malformed, "a folder is needed, but it is something else", "name a folder")
    case .fileAnotherKind:
      .init("file-another-kind", .malformed, "the folder is that of another part of Holdfast", "use another folder")
    case .fileNotRegular:
      .init("file-not-regular", .malformed, "it is a pipe, a socket or a device", "name a regular file")
    case .fileSymbolicLink:
      .init("file-symbolic-link", .malformed, "it is a symbolic link, which is not followed", "name the file itself")
    case .fileTooLarge: .init("file-too-large", .malformed, "the file is too large", "is it the right one?")
    case .fileTooOpen:
      .init("file-too-open", .noPermission, "others could read or change a secret file", "chmod go= FILE")
    case .fileWrongOwner:
      .init("file-wrong-owner", .noPermission, "the file belongs to another user", "run as the user that owns it")
    case .fileExists:
      .init("file-exists", .malformed, "the file exists already, and nothing was overwritten", "use another name")
    case .fileLocked: .init("file-locked", .unavailable, "another process uses it", "wait for that process, or stop it")
    case .diskFull: .init("disk-full", .fault, "the disk is full", "free some space and try again")
    default: nil
    }
  }

  private var proverRow: FailureRow? {
    switch self {
    case .stateIncomplete:
      .init("state-incomplete", .malformed, "a file of an enrolment is missing", "enrol again with --replace")
    case .stateDamaged:
      .init("state-damaged", .malformed, "a file of the state folder is damaged", "enrol again with --replace")
    case .stateOtherVersion:
      .init(
        "state-other-version", .malformed, "another version wrote the enrolment", "use that version, or enrol again")
    case .nothingEnrolled:
      .init("nothing-enrolled", .malformed, "no device is enrolled in the state folder", "enrol first: holdfast enroll")
    case .severalEnrolled:
      .init("several-enrolled", .malformed, "several devices are enrolled", "name one of them with --device")
    case .notEnrolled:
      .init(
        "not-enrolled", .malformed, "the device that answers or was named is not enrolled",
        "check the address, or enrol for it too")
    case .unknownProofKey:
      .init(
        "unknown-proof-key", .malformed, "this build does not have the key of the baseline",
        "use that release, or enrol again")
    case .unknownComponent:
      .init(
        "unknown-component", .malformed, "this build does not measure a component of the baseline",
        "enrol again with --replace")
    case .mountedOver:
      .init(
        "mounted-over", .fault, "something is mounted over a source of the measurement",
        "stop using this host until you know why")
    case .unreadableSource:
      .init(
        "unreadable-source", .fault, "a source of the measurement cannot be read",
        "see docs/measurement.md for the sources")
    default: nil
    }
  }

  private var enrolmentRow: FailureRow? {
    switch self {
    case .anotherDevice:
      .init("another-device", .malformed, "another device answers than the required one", "check the address")
    case .anotherKey:
      .init(
        "another-key", .malformed, "the enrolled device answers with another key",
        "if its owner set it up again, enrol with its new descriptor")
    case .alreadyEnrolled:
      .init("already-enrolled", .malformed, "the device is enrolled already", "add --replace for a new token")
    case .baselineWaits:
      .init("baseline-waits", .malformed, "a baseline waits for its token", "complete it, or add --replace")
    case .noBaseline:
      .init("no-baseline", .malformed, "no baseline waits for a token of the device", "measure first")
    case .notAToken:
      .init("not-a-token", .malformed, "it is neither a measurement token nor an answer with one", "ask the backend")
    case .badTerms:
      .init("bad-terms", .malformed, "terms are not signed, or belong to another token", "enrol again")
    case .usedBaseline:
      .init("used-baseline", .malformed, "the baseline belongs to another device already", "measure again")
    case .stateBusy:
      .init("state-busy", .unavailable, "another process is changing the state folder", "wait for that process")
    case .noExchange:
      .init("no-exchange", .fault, "the file system cannot replace a folder in one step", "use another file system")
    case .offlineLimit:
      .init("offline-limit", .denied, "the issuer's time for being offline is over", "enrol again with --replace")
    case .notCompliant:
      .init("not-compliant", .denied, "a version does not comply with the issuer's rules", "update it, and enrol again")
    case .enrolmentWiped:
      .init("enrolment-wiped", .denied, "a rule of the issuer removed the enrolment", "update, and enrol again")
    case .enrolmentReplaced:
      .init("enrolment-replaced", .denied, "another process has replaced the enrolment", "run the command again")
    case .hostSecretMissing:
      .init("host-secret-missing", .malformed, "this host's secret is missing", "restore it, or enrol again")
    case .hostSecretDamaged:
      .init("host-secret-damaged", .malformed, "this host's secret is damaged", "restore it, or enrol again")
    default: nil
    }
  }

  private var onlineRow: FailureRow? {
    switch self {
    case .serviceRefused:
      .init("service-refused", .denied, "the online service refuses", "the message has its reasons and its code")
    case .requestRefused:
      .init("request-refused", .denied, "the service's operator refused the request", "ask the operator")
    case .requestExpired:
      .init("request-expired", .denied, "the operator did not decide in time", "the same command asks again")
    case .requestWaits:
      .init("request-waits", .unavailable, "the operator has not decided yet", "the same command continues it")
    case .serviceUnreachable:
      .init("service-unreachable", .unavailable, "no service answers", "check the address and the network")
    case .noTLS:
      .init("no-tls", .unavailable, "there is no connection by TLS 1.3", "the service must offer TLS 1.3")
    case .serviceNotNow:
      .init("service-not-now", .unavailable, "the service cannot answer now", "try again later")
    case .wrongPin:
      .init(
        "wrong-pin", .impostor, "no key in the service's chain of certificates is a pinned one",
        "ask its operator whether the key is new")
    case .badCertificate:
      .init("bad-certificate", .impostor, "the service's certificate does not count", "check address, clock and --ca")
    case .badAuthorities:
      .init("bad-authorities", .malformed, "the file of --ca has no certificates", "it must be in PEM")
    case .notAService:
      .init("not-a-service", .malformed, "the other end does not answer as a service", "check the address")
    case .otherPins:
      .init(
        "other-pins", .malformed, "the state folder keeps other pins for the service",
        "add --replace-pins if it is right")
    case .carrierMissing:
      .init("carrier-missing", .unavailable, "the program holdfast-carrier is missing", "install it")
    case .servicesDamaged:
      .init(
        "services-damaged", .malformed, "services.json of the state folder has a mistake", "correct it or remove it")
    default: nil
    }
  }

  private var sealRow: FailureRow? {
    switch self {
    case .sealRequestMalformed:
      .init(
        "seal-request-malformed", .malformed, "it is not the text of a request for a seal",
        "holdfast prove --seal-request makes one")
    case .sealRequestNotAuthentic:
      .init(
        "seal-request-not-authentic", .malformed, "the device did not make the request for a seal, or it was changed",
        "do not seal it")
    case .sealRequestForeign:
      .init(
        "seal-request-foreign", .denied, "the request for a seal is for another user or authenticator",
        "use the authenticator that the device knows")
    case .sealRequestExpired:
      .init("seal-request-expired", .denied, "the request for a seal has expired", "ask for another one")
    case .refusedByUser:
      .init("refused-by-user", .denied, "the user refused the command, and the device has recorded it", "ask the user")
    case .codeUsed:
      .init("code-used", .denied, "a code was accepted before", "make another code; each is valid once")
    case .codeTooOld: .init("code-too-old", .denied, "a code is of a time that has passed", "make another code")
    case .noChallenge:
      .init("no-challenge", .denied, "the device waits for no code of the user", "ask for a challenge first")
    case .challengeExpired:
      .init("challenge-expired", .denied, "the challenge that a code answers has expired", "ask for another challenge")
    default: nil
    }
  }

  private var postureRow: FailureRow {
    switch self {
    case .postureRefused:
      .init(
        "posture-refused", .denied, "the posture rules refuse this host", "holdfast posture shows why; remove the cause"
      )
    case .postureRulesContent:
      .init(
        "posture-rules-content", .malformed, "signed posture rules are not as documented", "ask their issuer for others"
      )
    case .postureRulesOfAnotherIssuer:
      .init(
        "posture-rules-of-another-issuer", .denied, "posture rules are from another issuer",
        "install rules of the first issuer")
    case .postureRulesNotAuthentic:
      .init("posture-rules-not-authentic", .denied, "the signature of posture rules is wrong", "get the rules again")
    case .postureRulesNotNewer:
      .init(
        "posture-rules-not-newer", .denied, "posture rules do not have a higher number",
        "rules never go back; ask for newer ones")
    case .postureRulesNeedIssuer:
      .init("posture-rules-need-issuer", .usage, "the first posture rules need the issuer's key", "add --issuer")
    case .postureWiped:
      .init(
        "posture-wiped", .denied, "the posture rules removed all enrolments of this host",
        "remove the cause that holdfast posture shows, and enrol again")
    case .postureStatementMalformed:
      .init(
        "posture-statement-malformed", .malformed, "it is not a posture statement", "holdfast posture --sign makes one")
    case .postureStatementOfAnotherKey:
      .init(
        "posture-statement-of-another-key", .malformed, "a posture statement has another key",
        "is it from another host?")
    case .postureStatementNotAuthentic:
      .init(
        "posture-statement-not-authentic", .malformed, "the signature of a posture statement is wrong",
        "ask the host again")
    default:
      .init(
        "posture-rules-malformed", .malformed, "it is not a file of signed posture rules",
        "holdfast service posture-rules signs them")
    }
  }
}
