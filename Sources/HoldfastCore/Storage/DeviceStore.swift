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

  /// A user's secret for one kind of codes; asked for once their attempt is recorded.
  mutating func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(StoreFailure) -> CodeSecret

  /// One of the owner's codes, from 0 on without gaps; nil past the last.
  mutating func oneUseCode(at index: Int) throws(StoreFailure) -> OneUseCodeRecord?

  /// Makes the user of an activation code and uses the code up, all in one transaction that is durable before this returns;
  /// false where the code is gone or out of time. `realClock` is in Unix seconds.
  mutating func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?
  ) throws(StoreFailure) -> Bool

  /// Lets the user of an unlocking code try again and uses the code up, likewise.
  mutating func unlock(_ codeID: UInt64, realClock: UInt64?) throws(StoreFailure) -> Bool

  /// Adds one to the totals of answers to peers that proved nothing; not durable at once.
  mutating func countUnproved(_ status: Status)
}

/// A user's secret, at most 64 bytes.
public typealias CodeSecret = ByteBuffer<64>

/// The store failed: nothing may be acted upon.
public struct StoreFailure: Error {
  public init() {}
}
