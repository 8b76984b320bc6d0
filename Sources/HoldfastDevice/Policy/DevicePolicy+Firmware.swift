import HoldfastCore
import HoldfastFirmware

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
