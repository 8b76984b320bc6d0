/// What a device must keep, and how.
///
/// Tokens may be forgotten at any time. What ``settle(_:judge:)`` records must survive a crash and a power cut.
public protocol DeviceStore: IssuerTrust, ~Copyable {
  /// A round begins: what was settled before is over.
  mutating func beginRound()

  /// The clock floor in Unix seconds: the device's time is never before it.
  mutating func clockFloor() throws(StoreFailure) -> UInt64

  /// The least that the device's time can be where it has no clock, in Unix seconds: the clock floor, or what the store knows to
  /// be later.
  mutating func knownTime() throws(StoreFailure) -> UInt64

  /// Makes `token` a copy of the one remembered under `reference`; false, and nothing changes, when there is none.
  mutating func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool

  /// Remembers a token whose holder has proved the device measurement.
  mutating func remember(_ token: borrowing VerifiedToken, as reference: TokenReference)

  /// Reads what it holds for `round`, lets `judge` make `decision`, and records it and its audit entry, all in one
  /// transaction that is durable before this returns. A decision that changes nothing (``Decision/isRecorded(over:_:)``) is
  /// counted in memory instead. When it throws, `decision` must not be acted upon.
  mutating func settle(_ round: borrowing Round, _ decision: inout Decision, judge: Judge) throws(StoreFailure)

  /// Keeps what came of an accepted round whose request has a number: `accepted`, or `internal` where the actuator failed.
  /// Called once the actuator has acted. The round is answered without waiting until this is durable; while it is not known,
  /// a repetition is answered `internal`.
  mutating func keepOutcome(_ outcome: Status, of request: RequestIdentity)

  /// The user of that name; nil for one that is not known.
  mutating func user(named name: BoundedText<32>) throws(StoreFailure) -> UserRecord?

  /// A user's secret for one kind of codes, asked for once their attempt is recorded; nil where there is none.
  mutating func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(StoreFailure) -> CodeSecret?

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

extension DeviceStore where Self: ~Copyable {
  public mutating func beginRound() {}

  public mutating func knownTime() throws(StoreFailure) -> UInt64 { try clockFloor() }
}

/// Makes a decision on a round, from what the store holds.
public typealias Judge = (borrowing Round, borrowing LedgerSnapshot, inout Decision) -> Void

/// A user's secret, at most 64 bytes.
public typealias CodeSecret = ByteBuffer<64>

/// The store failed: nothing may be acted upon.
public struct StoreFailure: Error {
  public init() {}
}
