import HoldfastFormats
import HoldfastProver

extension Failure {
  /// Creates the failure for a posture, or for rules about it, that were refused.
  package init(_ fault: PostureFault) {
    switch fault {
    case .refused(let number, let findings):
      self.init(
        code: .postureRefused, "the posture rules \(number) refuse this host: \(findings.joined(separator: ", "))",
        hint: "holdfast posture shows the details; remove the cause, or install newer rules")
    case .wiped(let number, let findings):
      self.init(
        code: .postureWiped,
        "the posture rules \(number) wipe because of this host: \(findings.joined(separator: ", ")); all enrolments were removed",
        hint: "holdfast posture shows the details; remove the cause, then enrol again")
    case .rules(.malformed):
      self.init(
        code: .postureRulesMalformed, "this is not a file of signed posture rules",
        hint: "holdfast service posture-rules --dir SERVICE RULES signs them")
    case .rules(.content): self.init(code: .postureRulesContent, "the posture rules are signed, but not as documented")
    case .rules(.anotherKey):
      self.init(
        code: .postureRulesOfAnotherIssuer, "the posture rules were signed by another issuer; nothing changed",
        hint: "only the issuer of the first rules can sign later ones")
    case .rules(.notAuthentic):
      self.init(code: .postureRulesNotAuthentic, "the signature of the posture rules is wrong; nothing changed")
    case .rules(.notNewer(let installed)):
      self.init(
        code: .postureRulesNotNewer,
        "the posture rules are not newer than the installed ones, which have number \(installed)",
        hint: "rules never go back: ask the issuer for rules with a higher number")
    case .rules(.issuerNeeded):
      self.init(
        code: .postureRulesNeedIssuer, "the first posture rules need the issuer's key",
        hint: "add --issuer with the output of service show --json")
    }
  }

  /// Creates the failure for a statement about a posture that cannot be trusted.
  package init(_ fault: SignedJSON.Fault, statement name: String) {
    switch fault {
    case .malformed, .unexpected:
      self.init(
        code: .postureStatementMalformed, "\(name) is not a posture statement",
        hint: "holdfast posture --sign makes one")
    case .anotherKey:
      self.init(
        code: .postureStatementOfAnotherKey, "\(name) was signed with another key", hint: "is it from another host?")
    case .notAuthentic: self.init(code: .postureStatementNotAuthentic, "the signature of \(name) is wrong")
    }
  }
}
