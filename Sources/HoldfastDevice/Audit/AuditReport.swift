import HoldfastCore

/// What a walk along the audit log found.
public struct AuditReport: Sendable, Equatable {
  /// What the ledger says the last entry is.
  public var recorded: AuditChain
  /// The sequence number of the first entry that is kept.
  public var firstKept: UInt64 = 1
  /// The sequence number of the first entry that is missing, changed or out of place; nil when the whole chain holds.
  public var firstBroken: UInt64?
}
