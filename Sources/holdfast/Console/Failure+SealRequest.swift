import HoldfastAuthenticator
import HoldfastCore

extension Failure {
  /// Creates the failure of a request for a seal that is not shown to the user. `folder` is the authenticator's.
  package init(_ fault: SealRequestFault, folder: String) {
    switch fault {
    case .malformed:
      self.init(
        code: .sealRequestMalformed, "that is not the text of a request for a seal, or it was cut",
        hint: "holdfast prove --seal-request makes one; from a picture, zbarimg --raw -q PICTURE prints it")
    case .newerVersion:
      self.init(
        code: .sealRequestMalformed, "the request for the seal has another version", hint: "use a later holdfast")
    case .foreign:
      self.init(
        code: .sealRequestForeign, "there are no records of the user for the device that the request is from",
        hint: "holdfast otp list --json shows users and devices; is it another user's authenticator?")
    case .notAuthentic:
      self.init(
        code: .sealRequestNotAuthentic, "the device did not make that request, or it was changed; do not seal it",
        hint: "after a new activation, older requests are worthless")
    case .expired:
      self.init(
        code: .sealRequestExpired, "the request for the seal has expired",
        hint: "ask for another one; if the clocks differ, run holdfast otp sync first")
    case .unreadable(let fault): self.init(fault, fieldByteLimit: nil)
    case .authenticator(let fault): self.init(fault, folder: folder)
    }
  }
}

extension Refusal {
  /// The kind of the failure for programs, if the device said why it rejected a code.
  var failureCode: FailureCode? {
    switch self {
    case .refusedByUser: .refusedByUser
    case .codeUsed: .codeUsed
    case .codeTooOld: .codeTooOld
    case .noChallenge: .noChallenge
    case .challengeExpired: .challengeExpired
    default: nil
    }
  }
}
