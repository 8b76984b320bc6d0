import HoldfastCore
import HoldfastFirmware
import HoldfastFormats

/// What a device's owner allows, as `policy.json` says it. Whatever is not named is refused.
package struct DevicePolicy: Policy, Sendable, Equatable {
  /// How many commands a policy may name.
  package static let maximumCommandCount = 256
  /// How far above the clock floor an `iat` may be unless the owner says otherwise, in days.
  package static let usualIssueAdvanceDays: UInt64 = 400
  /// The furthest that the owner may allow, in days.
  package static let greatestIssueAdvanceDays: UInt64 = 36_500
  /// The fewest audit entries that a policy may keep.
  package static let leastAuditEntryCount: UInt64 = 1000

  package var acceptsUnsigned: Bool
  package var acceptsMAC: Bool
  /// For commands without limits of their own, and for those that are not named.
  package var limits: TokenLimits
  package var maximumIssueAdvanceDays: UInt64
  package var codeLimits: CodeLimits
  /// How many audit entries a served folder keeps; nil for all. A microcontroller has a bound of its own.
  package var auditEntryCount: UInt64?
  /// The rules, with the limits that apply to each.
  package var commands: [BoundedText<32>: CommandRule]

  package init(
    commands: [BoundedText<32>: CommandRule] = [:], limits: TokenLimits = TokenLimits(), acceptsUnsigned: Bool = false,
    acceptsMAC: Bool = false, maximumIssueAdvanceDays: UInt64 = DevicePolicy.usualIssueAdvanceDays,
    codeLimits: CodeLimits = CodeLimits(), auditEntryCount: UInt64? = nil
  ) {
    self.commands = commands
    self.limits = limits
    self.acceptsUnsigned = acceptsUnsigned
    self.acceptsMAC = acceptsMAC
    self.maximumIssueAdvanceDays = maximumIssueAdvanceDays
    self.codeLimits = codeLimits
    self.auditEntryCount = auditEntryCount
  }

  package func rule(for command: BoundedText<32>) -> CommandRule? {
    commands[command]
  }

  package var commonFactors: Factors {
    guard !commands.isEmpty else { return [] }
    return commands.values.reduce(.all) { $0.intersection($1.factors) }
  }

  package var maximumIssueAdvanceSeconds: UInt64 {
    min(maximumIssueAdvanceDays, Self.greatestIssueAdvanceDays) * 86_400
  }

  /// Whether any command may come in a compatibility round.
  package var allowsCompatibility: Bool {
    commands.values.contains { $0.allowsCompatibility }
  }
}

extension DevicePolicy {
  /// No command at all: what holds while `policy.json` cannot be read.
  package static let denyAll = DevicePolicy()

  /// What `device init` writes for the simulated lock.
  package static let forSimulatedLock = DevicePolicy(commands: [
    BoundedText("lock"): CommandRule(factors: [.integrity, .device]),
    BoundedText("unlock"): CommandRule(factors: [.integrity, .device]),
    BoundedText("status"): CommandRule(factors: [.device]),
    BoundedText("configure"): CommandRule(factors: [.integrity, .device, .otp]),
    BoundedText("open-safe"): CommandRule(factors: [.integrity, .device, .seal]),
    UserCommandName.synchronise: CommandRule(factors: [.device]),
    UserCommandName.hostCode: CommandRule(factors: [.device]),
  ])
}

/// Why a policy could not be taken. All of it is then refused.
package enum PolicyFault: Error, Equatable {
  /// Not there, not a regular file of the owner's, or not to be read.
  case unreadable
  /// Not strict JSON, or longer than 256 KiB: where it is not.
  case malformed(JSONMistake)
  /// Strict JSON, but a member is missing, unknown or of another kind or range: which one.
  case unexpected(JSONMistake)
  /// Of a version that this program does not know.
  case newerVersion
}

extension FirmwarePolicy {
  /// The same policy in a form that needs no heap; nil for one with more commands than there is room for.
  init?(_ policy: DevicePolicy) {
    self.init(
      limits: policy.limits, acceptsUnsigned: policy.acceptsUnsigned, acceptsMAC: policy.acceptsMAC,
      maximumIssueAdvanceSeconds: policy.maximumIssueAdvanceSeconds, codeLimits: policy.codeLimits)
    for (name, rule) in policy.sortedCommands {
      guard allow(name, rule) else { return nil }
    }
  }
}

extension DevicePolicy {
  /// The same policy as the owner reads it; nil for one that no ``DevicePolicy`` was turned into.
  init?(_ policy: borrowing FirmwarePolicy) {
    let (days, rest) = policy.maximumIssueAdvanceSeconds.quotientAndRemainder(dividingBy: 86_400)
    guard rest == 0, days <= Self.greatestIssueAdvanceDays else { return nil }
    self.init(
      limits: policy.limits, acceptsUnsigned: policy.acceptsUnsigned, acceptsMAC: policy.acceptsMAC,
      maximumIssueAdvanceDays: days,
      codeLimits: policy.codeLimits)
    for index in 0..<policy.commandCount {
      let (name, rule) = policy.command(index)
      commands[name] = rule
    }
  }
}

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
