import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux

/// The owner's access to a device's durable state: in a folder's ``Ledger``, or in the image of a microcontroller's flash.
/// Each change is durable when the call returns, and audited. Real clocks are in Unix seconds.
package protocol OwnerLedger: AuditLog {
  /// Returns the floors, counts and the audit head.
  func summary() throws(LedgerFault) -> LedgerSummary
  /// Returns the trusted issuers, by key id.
  func issuers() throws(LedgerFault) -> [TrustedIssuer]
  /// Trusts an issuer. Returns whether it is new.
  func trust(_ issuer: borrowing IssuerKey, realClock: UInt64?) throws(LedgerFault) -> Bool
  /// Stops trusting an issuer. Returns whether it was trusted. Its generation floor stays.
  func removeTrust(_ keyID: KeyID, realClock: UInt64?) throws(LedgerFault) -> Bool
  /// Records the key for agreement that an issuer announced next to its key. Returns whether it is new.
  @discardableResult
  func setAgreementKey(_ point: P256Point, of issuer: KeyID) throws(LedgerFault) -> Bool
  /// Moves the clock floor to `floor`, in Unix seconds. Returns the previous floor.
  func moveClockFloor(to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64
  /// Moves the generation floor of a verifying key. Returns the previous floor.
  func moveGenerationFloor(of keyID: KeyID, to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64

  /// Returns the users, by name.
  func users() throws(LedgerFault) -> [LedgerUser]
  /// Returns the owner's codes in the store, in the order in which they were made. Expired ones may be among them.
  func openCodes() throws(LedgerFault) -> [OpenCode]
  /// Makes the code that activates a user; see ``Ledger/issueActivation(of:_:replaces:terms:realClock:random:)``.
  func issueActivation<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, _ methods: ByPurpose<CodeMethod>, replaces: Bool, terms: ActivationTerms,
    realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode
  /// Makes the code that unlocks a user who is locked out.
  func issueUnlock<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode
  /// Adds a user whose secrets were made elsewhere; see ``Ledger/addUser(_:_:replaces:realClock:)``.
  func addUser(
    _ user: BoundedText<32>, _ accounts: [NewAccount], replaces: Bool, realClock: UInt64?
  ) throws(LedgerFault)
  /// Locks a user until a time, in Unix seconds; see ``Ledger/lockUser(_:until:realClock:)``.
  func lockUser(_ user: BoundedText<32>, until: UInt64, realClock: UInt64?) throws(LedgerFault)
  /// Removes a user, the user's secrets, and the owner's codes for the user. Returns whether there was a user or a code with
  /// that name.
  func removeUser(_ user: BoundedText<32>, realClock: UInt64?) throws(LedgerFault) -> Bool
}

/// An audit log: a device's, or the part of one that was cut off into a file.
package protocol AuditLog {
  /// Returns the number of the last entry, and its hash.
  func auditHead() throws(LedgerFault) -> AuditChain
  /// Returns at most `limit` of the audit entries that are kept, from the one after `sequence` on.
  func auditEntries(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditEntry]
  /// Finds the first audit entry that is missing, changed or out of place.
  func verifyAudit() throws(LedgerFault) -> AuditReport
}

extension OwnerLedger {
  /// Returns the number of the last entry, and its hash.
  package func auditHead() throws(LedgerFault) -> AuditChain { try summary().audit }

  /// Makes the code that activates a user, without further terms.
  package func issueActivation<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, _ methods: ByPurpose<CodeMethod>, replaces: Bool, realClock: UInt64?,
    random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    try issueActivation(
      of: user, methods, replaces: replaces, terms: ActivationTerms(), realClock: realClock, random: &random)
  }

  /// Makes the code that gives new secrets to an authenticator of a user, under the demand that it has, and ends the user's
  /// lockout. It is an activation code.
  ///
  /// - Throws: the errors of ``issueActivation(of:_:replaces:terms:realClock:random:)``.
  package func issueRenewal<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    guard let known = try users().first(where: { $0.name == user }) else { throw .unknownUser }
    let terms = ActivationTerms(demand: known.demand, main: known.main, renews: true)
    return try issueActivation(
      of: user, known.record.accounts.map(\.method), replaces: true, terms: terms, realClock: realClock,
      random: &random)
  }

  /// Returns the name of the next spare authenticator of a user.
  ///
  /// - Throws: `unknownUser`, also for a spare; `tooManyAuthenticators`; `badUserName` if the user's name is too long for
  ///   spares; `busy`, `failed`.
  package func nextSpare(of user: BoundedText<32>) throws(LedgerFault) -> BoundedText<32> {
    let users = try users()
    guard let known = users.first(where: { $0.name == user }), known.main == nil else { throw .unknownUser }
    for name in user.spareNames where !users.contains(where: { $0.name == name }) { return name }
    throw user.spareNames.isEmpty ? .badUserName : .tooManyAuthenticators
  }
}

/// The names of users and of their spare authenticators: `alice#2` and `alice#3` are the spares of `alice`.
extension BoundedText<32> {
  /// The names that spare authenticators of this user can have; none if the user's name is too long.
  package var spareNames: [BoundedText<32>] {
    (2...3).compactMap { BoundedText<32>("\(self)#\($0)") }
  }

  /// Returns whether this can be the name of a spare authenticator of `user`.
  func isSpare(of user: BoundedText<32>) -> Bool { user.spareNames.contains(self) }

  /// Whether a new user may have the name: a `#` stands only in names of spares.
  var canBeNewUser: Bool {
    for index in bytes.indices where bytes[index] == UInt8(ascii: "#") { return false }
    return true
  }
}

extension Ledger: OwnerLedger {}

/// A summary of a ledger.
package struct LedgerSummary: Sendable, Equatable {
  /// The clock floor, in Unix seconds. The device's time is never before it.
  package let clockFloor: UInt64
  /// The number of the server's or the microcontroller's starts.
  package let bootCount: UInt64
  /// The number of use counts and nonces in the ledger.
  package let keptCount: UInt64
  /// The number of users.
  package let userCount: UInt64
  /// The number of audit entries so far, and the hash of the last one.
  package let audit: AuditChain
  /// The number of audit entries that a folder keeps.
  package var keptAuditCount: UInt64 = 0
  /// The number of the last audit entry that the home of the log has acknowledged; 0 if there is none.
  package var acknowledgedAuditCount: UInt64 = 0
  /// The number of starts of the server that did not end in order, as far as a later start has found that out.
  package var disorderlyEnds: UInt64 = 0
  /// Whether a server has started that has not ended in order: it runs, or was killed.
  package var hasUnfinishedRun = false
}

/// The reason that a ledger could not be read or changed.
public enum LedgerFault: Error, Equatable {
  /// The ledger's file could not be read or written.
  case failed
  /// The ledger's file or its file system is read-only.
  case readOnly
  /// The ledger holds invalid bytes: its file was damaged, or changed by another program.
  case damaged
  /// The image of a device's flash could not be written.
  case unwritable(FileError)
  /// Another process held the ledger for too long.
  case busy
  /// The device trusts as many issuers as it can.
  case tooManyIssuers
  /// Another issuer's key has the same key id.
  case keyIDTaken
  /// The trust in an issuer would end before it begins.
  case emptyPeriod
  /// The floor is above 2^53 - 1.
  case floorOutOfRange
  /// A floor in flash can only be raised.
  case floorOnlyRises
  /// No issuer with that key id is trusted, or was.
  case unknownIssuer
  /// A user with that name exists already.
  case userExists
  /// No user has that name.
  case unknownUser
  /// The device has as many users as it can.
  case tooManyUsers
  /// The user has as many authenticators as the device allows.
  case tooManyAuthenticators
  /// The name of a new user has a `#`, or is too long for the names of spare authenticators.
  case badUserName
  /// A board keeps neither spare authenticators nor the owner's demands.
  case notOnBoards
  /// As many of the owner's codes are pending as the device allows.
  case tooManyCodes
  /// The device cannot verify codes of this method.
  case unsupportedMethod
  /// The time step is so short that a microcontroller would take too long to search for a code.
  case timeStepTooShort
  /// The ledger is not the newest one, according to the counter that anchors it.
  case rolledBack
  /// The counter that anchors the ledger could not be used.
  case counter(CounterFault)
}

/// A new one of the owner's codes, and the key that a device keeps of it.
struct DrawnCode: ~Copyable {
  private let code: OneUseCode
  let key: Secret<32>

  /// Draws a random code and derives its key.
  ///
  /// - Throws: `failed` if the random source or the cryptography fails.
  init<Random: RandomSource & ~Copyable>(
    _ purpose: OneUseCode.Purpose, random: inout Random
  ) throws(LedgerFault) {
    let code = try Self.draw(&random)
    key = try Self.key(of: code, for: purpose)
    self.code = code
  }

  private static func draw<Random: RandomSource & ~Copyable>(_ random: inout Random) throws(LedgerFault) -> OneUseCode {
    do throws(RandomFailure) { return try OneUseCode.random(using: &random) } catch { throw .failed }
  }

  private static func key(
    of code: borrowing OneUseCode, for purpose: OneUseCode.Purpose
  ) throws(LedgerFault) -> Secret<32> {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { return try code.key(for: purpose, using: &cryptography) } catch { throw .failed }
  }

  consuming func intoCode() -> OneUseCode { code }

  /// Returns whether a user can be activated with these methods: there is at least one, and a device can verify each.
  static func canActivate(_ methods: ByPurpose<CodeMethod>) -> Bool {
    methods.count > 0
      && CodePurpose.allCases.allSatisfy { purpose in
        methods[purpose].map { CodeAccount.canVerify($0, for: purpose) } ?? true
      }
  }
}

/// An account of a user, whose secret was made elsewhere.
package final class NewAccount: Sendable {
  let purpose: CodePurpose
  let account: CodeAccount
  let secret: SecretBytes

  /// Makes an account; nil unless `secret` has 1 to 64 bytes and `nextPosition` is at most 2^53 - 1.
  package init?(purpose: CodePurpose, method: CodeMethod, nextPosition: UInt64 = 0, secret: consuming SecretBytes) {
    guard (1...64).contains(secret.count), nextPosition <= maximumInteger else { return nil }
    self.purpose = purpose
    account = CodeAccount(method: method, nextPosition: nextPosition)
    self.secret = secret
  }

  /// Whether a device can verify the account's codes.
  var isVerifiable: Bool { CodeAccount.canVerify(account.method, for: purpose) }

  /// Whether the account's codes are one-time passwords over a challenge, which a board cannot verify.
  var isBoundToConnection: Bool { account.isBoundToConnection(for: purpose) }

  func secretCopy() -> CodeSecret {
    var copy = CodeSecret()
    // A copy always fits, because no secret is longer than the buffer.
    secret.withBytes { try? copy.append($0) }
    return copy
  }

  /// Returns this account as it begins when it replaces the user's account, whose secret is `known`.
  func account(after user: UserRecord, _ known: borrowing CodeSecret) -> CodeAccount {
    guard let earlier = user.accounts[purpose] else { return account }
    var begun = account
    secret.withBytes { begun.carryOn(with: $0, after: earlier, known.bytes) }
    return begun
  }
}
