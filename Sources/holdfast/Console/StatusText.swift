import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastProver

extension Status {
  /// The explanation for a person, with a hint.
  var explanation: (text: String, hint: String?) { (text.description, hint) }

  /// The advice to a person, if the text needs one.
  private var hint: String? {
    switch self {
    case .tokenInvalid: "does it trust the issuer? Its owner can run holdfast device trust --dir DIR service.json"
    case .tokenExpired, .tokenRevoked, .tokenUnknown, .usesExhausted: enrolAgain
    case .integrityMismatch: "\(explain); if the change is intended, \(enrolAgain)"
    case .deviceMismatch: "\(explain); if this host should have the token, \(enrolAgain)"
    case .factorMissing: "give codes with --user, --otp and --seal"
    case .otpRejected:
      "a code is valid once; is the PIN right? If the authenticator is out of step, send two codes in a row"
    case .sealRejected: "a seal is valid once, for exactly this command and these parameters; is the PIN right?"
    case .lockedOut: "wait, or ask the device's owner for a code: holdfast device user unlock --dir DIR USER"
    case .commandRefused: policy
    case .challengeExpired: "try again"
    case .busy: "try again later"
    case .versionTooOld: "update the app, then \(enrolAgain)"
    case .internal: "see the log of device serve or device bridge, or the board's console"
    default: nil
    }
  }
}

private let enrolAgain = "enrol again: holdfast enroll --device DESCRIPTOR --service SERVICE --state STATE --replace"
private let explain = "holdfast explain --state STATE shows what changed"
private let policy = "holdfast device policy --dir DIR shows what the owner allows"

extension Refusal {
  /// Returns the explanation that replaces the status's, with a hint. `command` is the one that the device refused.
  func explanation(of command: String) -> (text: String, hint: String?) {
    switch self {
    case .notInPolicy:
      (
        "the device's policy does not allow that command, or not with these parameters",
        UserCommandName.hasOwnRule(command)
          ? "for this, the policy must name \(command); \(policy)" : policy
      )
    case .notInToken:
      ("the measurement token does not allow that command", "ask the issuer for a token that lists it")
    case .anotherUser:
      (
        "the command concerns a different user than the token, or its codes must all come from one user",
        "the token is for one user: use that user"
      )
    case .parameterTooLong:
      (
        "the command needs a seal, and a parameter is too long for a person to read",
        "holdfast device policy --dir DIR shows codes.seal_parameter_length, the maximum number of characters"
      )
    case .anotherCommand:
      ("the request has the number of an earlier request, but asks for something else", "run the command again")
    case .challengePending:
      (
        "the user was given a challenge less than a minute ago, and may be about to answer it",
        "answer that one, or try again in a minute"
      )
    case .unknownToActuator:
      (
        "the device's policy allows that command, but its actuator does not know it, so nothing was done",
        "the owner should remove it from the policy; a simulated lock knows lock, unlock, status, configure and open-safe"
      )
    case .auditLogFull:
      (
        "the device's audit log is full, and its policy demands that the home of the log has every entry",
        "carry the log home: holdfast sync, then the command again"
      )
    case .refusedByUser: ("the user refused the command, and the device has recorded it", nil)
    case .codeUsed: ("the code, or a later one, was accepted before", "make another code; each is valid once")
    case .codeTooOld:
      ("the code is of a time that has passed", "make another code; if it is fresh, run holdfast otp sync first")
    case .noChallenge:
      (
        "the device waits for no code of that user: its challenge was answered before, or never asked for",
        "ask for a challenge with prove --seal-request or otp check-host, and answer it within 5 minutes"
      )
    case .challengeExpired: ("the challenge that the code answers has expired", "ask for another challenge")
    }
  }
}

extension UserCommandName {
  /// Whether a device carries out `command` itself if the policy names it.
  fileprivate static func hasOwnRule(_ command: String) -> Bool {
    BoundedText<32>(command).map { contains($0, under: DevicePolicy.self) } ?? false
  }
}

extension ProofOutcome {
  /// The explanation, with a hint, if the device had seen the request's number before; nil otherwise.
  var repetition: (text: String, hint: String?)? {
    guard verdict.isRepetition else { return nil }
    let look = "another attempt is a new command: look at the device before you send it"
    switch verdict.status {
    case .sealRejected: return ("an earlier attempt brought the user's refusal, which the device has recorded", nil)
    case .accepted: return ("already carried out by an earlier attempt (the command was not repeated)", nil)
    case .busy: return ("the device is still carrying out an earlier attempt of this request", look)
    case _ where attemptCount > 1:
      return ("the device saw this request before; it is unknown whether it was carried out", look)
    default:
      return (
        "the device had already seen a request number at least as high, and did not carry out this request",
        "the number is now corrected: try again. Is there a copy of the state folder, or was the clock set back?"
      )
    }
  }
}
