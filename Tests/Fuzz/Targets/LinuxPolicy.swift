import HoldfastCore
import TestSupport

/// A policy that lets a device do everything that a device on Linux can.
struct LinuxPolicy: Policy {
  let base: TestPolicy

  static var knowsUserState: Bool { true }
  static var knowsSealRequests: Bool { true }
  static var knowsAuthenticators: Bool { true }
  static var knowsBulletins: Bool { true }

  var auditHome: KeyID? { KeyID() }

  func mayIntroduce(_ issuer: KeyID) -> Bool { base.mayIntroduce(issuer) }
  func rule(for command: BoundedText<32>) -> CommandRule? { base.rule(for: command) }
  var limits: TokenLimits { base.limits }
  var commonFactors: Factors { base.commonFactors }
  var acceptsUnsigned: Bool { base.acceptsUnsigned }
  var acceptsMAC: Bool { base.acceptsMAC }
  var codeLimits: CodeLimits { base.codeLimits }
  var maximumIssueAdvanceSeconds: UInt64 { base.maximumIssueAdvanceSeconds }
}
