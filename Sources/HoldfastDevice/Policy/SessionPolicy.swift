import HoldfastCore

/// The policy of one connection: the same from the start of a round to its end, whatever happens to the file meanwhile.
///
/// A class, so that the connection can renew it while its ``DeviceSession`` holds it. Used by one thread.
final class SessionPolicy: Policy {
  var current = DevicePolicy.denyAll

  func rule(for command: BoundedText<32>) -> CommandRule? { current.rule(for: command) }
  var limits: TokenLimits { current.limits }
  var commonFactors: Factors { current.commonFactors }
  var acceptsUnsigned: Bool { current.acceptsUnsigned }
  var acceptsMAC: Bool { current.acceptsMAC }
  var codeLimits: CodeLimits { current.codeLimits }
  var maximumIssueAdvanceSeconds: UInt64 { current.maximumIssueAdvanceSeconds }
}
