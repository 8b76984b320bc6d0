/// What a device must keep, and how.
///
/// Tokens may be forgotten at any time. What ``settle(_:judge:)`` records must survive a crash and a power cut.
public protocol DeviceStore: IssuerTrust, ~Copyable {
  /// The clock floor in Unix seconds: the device's time is never before it.
  mutating func clockFloor() throws(StoreFailure) -> UInt64

  /// A copy of the token remembered under `reference`; nil when there is none.
  mutating func recall(_ reference: TokenReference) -> VerifiedToken?

  /// Remembers a token whose holder has proved the device measurement.
  mutating func remember(_ token: borrowing VerifiedToken, as reference: TokenReference)

  /// Reads what it holds for `round`, lets `judge` decide, and records the decision and its audit entry, all in one
  /// transaction that is durable before this returns.
  mutating func settle(
    _ round: Round, judge: (Round, LedgerSnapshot) -> Decision
  ) throws(StoreFailure) -> Decision

  /// Adds one to the totals of answers to peers that proved nothing; not durable at once.
  mutating func countUnproved(_ status: Status)
}

/// The store failed: nothing may be acted upon.
public struct StoreFailure: Error {
  public init() {}
}
