/// The storage of a device. It reads facts and commits changes, and decides nothing: the rules are in this module.
///
/// It may forget tokens at any time. The records of ``record(_:_:decide:)`` must survive a crash and a power cut.
public protocol DeviceStore: IssuerTrust, ~Copyable {
  /// Returns the clock floor, in Unix seconds. The device's time is never before it.
  mutating func clockFloor() throws(DeviceFault) -> UInt64

  /// Returns the least time that is possible for a device without a clock, in Unix seconds: the clock floor, or a later
  /// time that the store knows.
  mutating func knownTime() throws(DeviceFault) -> UInt64

  /// Makes `token` a copy of the token that is remembered under `reference`; returns false, and changes nothing, if
  /// there is none.
  mutating func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool

  /// Remembers a token whose holder has proved the device measurement (DM).
  mutating func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference)

  /// Reads its data for `round`, lets `decide` make `decision`, and records the decision and its audit entry, all in one
  /// transaction that is durable before this returns. A decision that changes nothing
  /// (``Decision/isRecorded(over:_:)``) is counted in memory instead. A store with an audit log sets
  /// ``Decision/auditSequence``. If this throws, the device must not act upon `decision`.
  mutating func record(_ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide)
    throws(DeviceFault)

  /// Takes note of the request of the round that is recorded next, for a store that records its parameters.
  mutating func noteParameters(of request: borrowing Request)

  /// Records that the command of an accepted round failed. The device calls it before
  /// ``keepOutcome(_:of:)``, and answers whether or not the record could be written.
  mutating func recordFailure(_ failure: ActuatorFailure, of round: borrowing AcceptedRound)

  /// Records the outcome of an accepted round whose request has a number: `accepted`, or `internal` if the actuator
  /// failed. The device calls it once the actuator has acted, and answers without waiting until the outcome is durable.
  /// While the outcome is unknown, a repetition is answered `internal`.
  mutating func keepOutcome(_ outcome: Status, of request: RequestIdentity)

  /// Returns the user with this name; nil for an unknown user.
  mutating func user(named name: BoundedText<32>) throws(DeviceFault) -> UserRecord?

  /// Returns a user's secret for one kind of codes; nil if there is none. The device asks for it once the attempt is
  /// recorded.
  mutating func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(DeviceFault) -> CodeSecret?

  /// Returns one of the owner's codes, counted from 0 without gaps; nil past the last one.
  mutating func oneUseCode(at index: Int) throws(DeviceFault) -> OneUseCodeRecord?

  /// Reads the facts about an activation code, lets `decide` make the record of its user, records the user and the secrets
  /// in place of any user of the same name, and uses up the code, all in one transaction that is durable before this
  /// returns. The store gives the record its ``UserRecord/id``. Returns false if the code no longer exists, or if `decide`
  /// returns nil. `realClock`, in Unix seconds, dates the audit entry.
  mutating func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser
  ) throws(DeviceFault) -> Bool

  /// Reads the facts about an unlocking code, lets `decide` change the record of its user, records the change and uses up
  /// the code, in the same way as ``activate(_:_:realClock:decide:)``.
  mutating func unlock(_ codeID: UInt64, realClock: UInt64?, decide: DecideUser) throws(DeviceFault) -> Bool

  /// Returns the user to whom the authenticator with this name belongs; `name` itself for a user's first authenticator, and
  /// for an unknown name. The device asks only if ``Policy/knowsAuthenticators`` is true.
  mutating func mainUser(of name: BoundedText<32>) throws(DeviceFault) -> BoundedText<32>

  /// Returns the protection that the owner demands with an activation code; nil for none. The device asks only if
  /// ``Policy/knowsAuthenticators`` is true.
  mutating func protectionDemand(ofCode codeID: UInt64) throws(DeviceFault) -> ProtectionDemand?

  /// Writes the text that asks a user for the seal over a command, as the result of `seal-request`. Nothing is written for
  /// an unknown user. The challenge in it is the one that was recorded with the round.
  mutating func writeSealRequest(
    over request: borrowing Request, into result: inout ResultBuffer
  ) throws(ActuatorFailure)

  /// Adds one to the total of answers with `status` to peers that proved nothing. The total is not durable at once.
  mutating func countUnauthenticated(_ status: Status)

  #if !hasFeature(Embedded)
  /// Returns the numbers of the newest bulletins that the device has from an issuer's key; nil for a store that takes no bulletins, or
  /// none of this key.
  mutating func bulletins(of issuer: KeyID) throws(DeviceFault) -> BulletinList?
  #endif

  /// Writes the same numbers into an empty list. Returns false, and writes nothing, for a store that takes no bulletins, or none of
  /// this key.
  mutating func writeBulletins(
    of issuer: KeyID, into list: inout EncodedBulletinList
  ) throws(DeviceFault) -> Bool

  /// Takes a bulletin, as far as its audience, its number, `terms` and the store's room permit, in one transaction that is durable
  /// before this returns `taken`. Any other result changes nothing.
  mutating func take(
    _ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms
  ) throws(DeviceFault) -> BulletinResult

  #if !hasFeature(Embedded)
  /// Returns a sealed page of the audit log for its home. Source: docs/couriers.md, The audit log goes home.
  ///
  /// - Parameters:
  ///   - from: the number of the first entry; 0 to let the store choose one that the home has not acknowledged.
  ///   - home: the id of the home's key.
  /// - Returns: nil if the home has announced no key for agreement, and if there is no such entry.
  mutating func auditPage(from: UInt64, for home: KeyID) throws(DeviceFault) -> [UInt8]?
  #endif

  /// Writes the text of a page of the audit log into an empty buffer, for a device without a heap, which seals it itself: see
  /// ``DeviceSession``. Source: docs/couriers.md, The audit log goes home.
  ///
  /// - Parameters:
  ///   - from: the number of the first entry; 0 to let the store choose one that the home has not acknowledged.
  ///   - text: takes the text, padded to a multiple of 256 bytes, at most 1024.
  /// - Returns: the home's public key for agreement; nil if it has announced none, and if there is no such entry.
  /// - Throws: `DeviceFault.store` if the log cannot be read.
  mutating func writeAuditPage(
    from: UInt64, into text: inout SealedReplyBuffer
  ) throws(DeviceFault) -> P256Point?

  /// Returns the number of the last entry of the audit log that its home has acknowledged; 0 if there is none.
  mutating func acknowledgedAuditCount() throws(DeviceFault) -> UInt64

  /// Records that the home has the entries up to a number, in a transaction that is durable before this returns `taken`.
  ///
  /// - Parameters:
  ///   - chain: the last entry that the home has. If the log has another entry at that number, or none, the store acknowledges nothing,
  ///     records that, and returns `refused`.
  ///   - home: the key that signed the receipt.
  ///   - realClock: the real clock, in Unix seconds; nil if there is none.
  mutating func acknowledgeAudit(
    _ chain: AuditChain, by home: KeyID, realClock: UInt64?
  ) throws(DeviceFault) -> BulletinResult
}

extension DeviceStore where Self: ~Copyable {
  /// Returns the clock floor.
  public mutating func knownTime() throws(DeviceFault) -> UInt64 { try clockFloor() }

  /// Returns `name`: the store has one authenticator for each user.
  @inlinable public mutating func mainUser(of name: BoundedText<32>) throws(DeviceFault) -> BoundedText<32> { name }

  /// Returns nil: the store keeps no demands.
  @inlinable public mutating func protectionDemand(
    ofCode codeID: UInt64
  ) throws(DeviceFault) -> ProtectionDemand? { nil }

  /// Does nothing: the store does not record parameters.
  @inlinable public mutating func noteParameters(of request: borrowing Request) {}

  /// Throws: the store makes no requests for seals.
  @inlinable public mutating func writeSealRequest(
    over request: borrowing Request, into result: inout ResultBuffer
  ) throws(ActuatorFailure) { throw ActuatorFailure() }

  /// Does nothing: the store does not record failures.
  @inlinable public mutating func recordFailure(_ failure: ActuatorFailure, of round: borrowing AcceptedRound) {}

  #if hasFeature(Embedded)
  /// Returns false: the store takes no bulletins.
  public mutating func writeBulletins(
    of issuer: KeyID, into list: inout EncodedBulletinList
  ) throws(DeviceFault) -> Bool { false }
  #else
  /// Returns nil: the store takes no bulletins.
  public mutating func bulletins(of issuer: KeyID) throws(DeviceFault) -> BulletinList? { nil }

  /// Encodes the list that the store returns.
  public mutating func writeBulletins(
    of issuer: KeyID, into list: inout EncodedBulletinList
  ) throws(DeviceFault) -> Bool {
    guard let known = try bulletins(of: issuer) else { return false }
    list = EncodedBulletinList(known)
    return true
  }
  #endif

  /// Returns `refused`: the store takes no bulletins.
  public mutating func take(
    _ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms
  ) throws(DeviceFault) -> BulletinResult { .refused }

  #if !hasFeature(Embedded)
  /// Returns nil: the store's log does not go home.
  public mutating func auditPage(from: UInt64, for home: KeyID) throws(DeviceFault) -> [UInt8]? { nil }
  #endif

  /// Returns nil, for the same reason.
  package mutating func writeAuditPage(
    from: UInt64, into text: inout SealedReplyBuffer
  ) throws(DeviceFault) -> P256Point? { nil }

  /// Returns 0, for the same reason.
  public mutating func acknowledgedAuditCount() throws(DeviceFault) -> UInt64 { 0 }

  /// Returns `refused`, for the same reason.
  public mutating func acknowledgeAudit(
    _ chain: AuditChain, by home: KeyID, realClock: UInt64?
  ) throws(DeviceFault) -> BulletinResult { .refused }
}

/// A function that makes a decision on a round from the store's data.
public typealias Decide = (borrowing AppraisalInput, borrowing LedgerSnapshot, inout Decision) -> Void

/// A function that makes the new record of the user of one of the owner's codes; nil to refuse the code.
public typealias DecideUser = (borrowing CodeFacts) -> UserRecord?

/// A user's secret for one kind of codes, at most 64 bytes.
public typealias CodeSecret = ByteBuffer<64>
