import HoldfastCore
import HoldfastKeys

/// What the owner of a device reads and changes of what it must never forget: in a folder's ``Ledger``, or in the image of a
/// microcontroller's flash. Each change is durable when the call returns, and audited. Real clocks are in Unix seconds.
public protocol OwnerLedger: AuditLog {
  func summary() throws(LedgerFault) -> LedgerSummary
  /// The trusted issuers, by key id.
  func issuers() throws(LedgerFault) -> [TrustedIssuer]
  /// Trusts an issuer; says whether it is new.
  func trust(_ issuer: borrowing IssuerKey, realClock: UInt64?) throws(LedgerFault) -> Bool
  /// Trusts an issuer no longer; says whether it was trusted. Its generation floor stays.
  func removeTrust(_ keyID: KeyID, realClock: UInt64?) throws(LedgerFault) -> Bool
  /// Moves the clock floor by hand, to `floor` in Unix seconds; returns where it was.
  func moveClockFloor(to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64
  /// Moves the generation floor of a verifying key by hand; returns where it was.
  func moveGenerationFloor(of keyID: KeyID, to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64

  /// The users, by name.
  func users() throws(LedgerFault) -> [LedgerUser]
  /// The owner's codes that are kept, in the order in which they were made; those that are out of time may be among them.
  func openCodes() throws(LedgerFault) -> [OpenCode]
  /// Makes the code by which a user is activated; see ``Ledger/issueActivation(of:otp:seal:replaces:realClock:random:)``.
  func issueActivation<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, otp: CodeMethod?, seal: CodeMethod?, replaces: Bool, realClock: UInt64?,
    random: inout Random
  ) throws(LedgerFault) -> OneUseCode
  /// Makes the code by which a user who is locked out may try again.
  func issueUnlock<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode
  /// Adds a user whose secrets were made elsewhere; see ``Ledger/addUser(_:_:replaces:realClock:)``.
  func addUser(
    _ user: BoundedText<32>, _ accounts: [NewAccount], replaces: Bool, realClock: UInt64?
  ) throws(LedgerFault)
  /// Forgets a user, secrets and the owner's codes for them; says whether there was anything of that name.
  func removeUser(_ user: BoundedText<32>, realClock: UInt64?) throws(LedgerFault) -> Bool
}

/// An audit log: a device's, or the part of one that was cut off into a file.
public protocol AuditLog {
  /// The number of the last entry, and its hash.
  func auditHead() throws(LedgerFault) -> AuditChain
  /// At most `limit` of the audit entries that are kept, from the one after `sequence` on.
  func auditEntries(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditEntry]
  /// Finds the first audit entry that is missing, changed or out of place.
  func verifyAudit() throws(LedgerFault) -> AuditReport
}

extension OwnerLedger {
  public func auditHead() throws(LedgerFault) -> AuditChain { try summary().audit }
}

extension Ledger: OwnerLedger {}

/// What a ledger says of itself.
public struct LedgerSummary: Sendable, Equatable {
  /// Unix seconds: the device's time is never before it.
  public let clockFloor: UInt64
  /// How often the server was started.
  public let bootCount: UInt64
  /// How many counted tokens and nonces are kept.
  public let keptCount: UInt64
  public let userCount: UInt64
  /// How many audit entries there are, and the hash of the last one.
  public let audit: AuditChain
}
