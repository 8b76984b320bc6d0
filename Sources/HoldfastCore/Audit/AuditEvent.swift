/// Something that the audit log keeps.
public enum AuditEvent: Sendable, Equatable {
  /// A round whose peer had proved the device measurement, and how it ended: an accepted one, or one that moved a floor or tested
  /// a code. All others are in ``denied(_:)``.
  case round(AuditedRound)
  /// How many answers of each status went to peers that had proved nothing, since the totals before.
  case unproved(UnprovedTotals)
  /// The folder was made, for this device.
  case created(DeviceID)
  /// The server started; `bootCount` counts its starts.
  case started(bootCount: UInt64)
  /// The server ended in order.
  case stopped
  case issuerTrusted(KeyID)
  case issuerRemoved(KeyID)
  /// A policy came into force: SHA-256 of its file, or nil for one that could not be taken, so that all is refused.
  case policySeen(Digest?)
  /// The owner moved the clock floor by hand, in Unix seconds.
  case clockFloorMoved(from: UInt64, to: UInt64)
  /// The owner moved the generation floor of a verifying key by hand.
  case generationFloorMoved(KeyID, from: UInt64, to: UInt64)
  /// The owner made a new device of it, with this id.
  case reset(DeviceID)
  /// The owner made a code for a user.
  case codeIssued(OneUseCode.Purpose, BoundedText<32>)
  /// A user took secrets with the owner's code.
  case userActivated(BoundedText<32>)
  /// The owner added a user whose secrets were made elsewhere.
  case userAdded(BoundedText<32>)
  /// A user who was locked out took the owner's code.
  case userUnlocked(BoundedText<32>)
  /// The owner removed a user.
  case userRemoved(BoundedText<32>)
  /// Rounds that were denied and changed nothing, since the counts before.
  case denied(DeniedRounds)
  /// The entries up to this point of the chain are no longer kept.
  case logCut(AuditChain)
}

/// What the audit log says of a round. It holds no secret.
public struct AuditedRound: Sendable, Equatable {
  public var status: Status
  public var command: BoundedText<32>
  /// The key that signed the token; nil for an unsigned one.
  public var verifyingKey: KeyID?
  public var tokenID: TokenID
  public var subject: BoundedText<64>
  public var isCompatibility: Bool
  /// Whose codes were compared, or whom `host-code` or `user-sync` named; nil where there is nobody.
  public var user: BoundedText<32>?
  /// Whether its request had been accepted before, so that the device did not act. No entry of an audit log has such a round.
  public var isRepetition = false

  /// A round that ended elsewhere, as a test or another store has it.
  package init(
    status: Status, command: BoundedText<32>, verifyingKey: KeyID?, tokenID: TokenID, subject: BoundedText<64>,
    isCompatibility: Bool, user: BoundedText<32>?
  ) {
    (self.status, self.command, self.verifyingKey, self.tokenID) = (status, command, verifyingKey, tokenID)
    (self.subject, self.isCompatibility, self.user) = (subject, isCompatibility, user)
  }

  public init(_ round: borrowing Round, status: Status) {
    self.status = status
    command = round.command
    verifyingKey = round.verifyingKey
    tokenID = round.tokenID
    subject = round.subject
    isCompatibility = round.compatibilityNonce != nil
    user = round.codeUser
  }
}
