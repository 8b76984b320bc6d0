import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage

/// What the owner of a device reads and changes of what it must never forget: in a folder's ``Ledger``, or in the image of a
/// microcontroller's flash. Each change is durable when the call returns, and audited. Real clocks are in Unix seconds.
package protocol OwnerLedger: AuditLog {
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
package protocol AuditLog {
  /// The number of the last entry, and its hash.
  func auditHead() throws(LedgerFault) -> AuditChain
  /// At most `limit` of the audit entries that are kept, from the one after `sequence` on.
  func auditEntries(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditEntry]
  /// Finds the first audit entry that is missing, changed or out of place.
  func verifyAudit() throws(LedgerFault) -> AuditReport
}

extension OwnerLedger {
  package func auditHead() throws(LedgerFault) -> AuditChain { try summary().audit }
}

extension Ledger: OwnerLedger {}

/// What a ledger says of itself.
package struct LedgerSummary: Sendable, Equatable {
  /// Unix seconds: the device's time is never before it.
  package let clockFloor: UInt64
  /// How often the server was started.
  package let bootCount: UInt64
  /// How many counted tokens and nonces are kept.
  package let keptCount: UInt64
  package let userCount: UInt64
  /// How many audit entries there are, and the hash of the last one.
  package let audit: AuditChain
}

/// Why a ledger could not do what it was asked.
package enum LedgerFault: Error, Equatable {
  /// Its file could not be read or written.
  case failed
  /// It holds what was never written: its file was damaged, or changed by somebody else.
  case damaged
  /// The image of a device's flash could not be written.
  case unwritable(FileError)
  /// Another process held it for too long.
  case busy
  /// There are as many trusted issuers already as there may be.
  case tooManyIssuers
  /// Another issuer's key has the same key id.
  case keyIDTaken
  /// An integer is at most 2^53 - 1.
  case floorOutOfRange
  /// A floor in flash only rises.
  case floorOnlyRises
  /// No issuer of that key id is trusted, and none was.
  case unknownIssuer
  /// There is a user of that name already.
  case userExists
  /// There is no user of that name.
  case unknownUser
  /// There are as many users as there may be.
  case tooManyUsers
  /// As many of the owner's codes as there may be wait to be used.
  case tooManyCodes
  /// The device cannot verify codes that are made this way.
  case unsupportedMethod
  /// A microcontroller would take too long to look for codes of such short time steps.
  case timeStepTooShort
  /// It is not the newest one, as the counter that anchors it tells.
  case rolledBack
  /// The counter that anchors it could not be used.
  case counter(CounterFault)
}

/// One of the owner's codes, new, and what a device keeps of it.
struct DrawnCode: ~Copyable {
  private let code: OneUseCode
  let key: Secret<32>

  /// Throws `failed`.
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

  /// Whether a user may be activated with such codes: there is one kind at least, and a device can verify each.
  static func canActivate(otp: CodeMethod?, seal: CodeMethod?) -> Bool {
    guard otp != nil || seal != nil else { return false }
    return (otp.map { CodeAccount.canVerify($0, for: .otp) } ?? true)
      && (seal.map { CodeAccount.canVerify($0, for: .seal) } ?? true)
  }
}

/// An account whose secret was made elsewhere.
package final class NewAccount: Sendable {
  let purpose: CodePurpose
  let account: CodeAccount
  let secret: SecretBytes

  /// Nil unless `secret` has 1 to 64 bytes and `nextPosition` is at most 2^53 - 1.
  package init?(purpose: CodePurpose, method: CodeMethod, nextPosition: UInt64 = 0, secret: consuming SecretBytes) {
    guard (1...64).contains(secret.count), nextPosition <= maximumInteger else { return nil }
    self.purpose = purpose
    account = CodeAccount(method: method, nextPosition: nextPosition)
    self.secret = secret
  }

  /// Whether a device can verify its codes.
  var isVerifiable: Bool { CodeAccount.canVerify(account.method, for: purpose) }

  func secretCopy() -> CodeSecret {
    var copy = CodeSecret()
    // It has room for every secret that there can be.
    secret.withBytes { try? copy.append($0) }
    return copy
  }

  /// As it begins in the place of the account that `user` has with `known` as its secret.
  func account(after user: UserRecord, _ known: borrowing CodeSecret) -> CodeAccount {
    guard let earlier = user.account(purpose) else { return account }
    var begun = account
    secret.withBytes { begun.carryOn(with: $0, after: earlier, known.bytes) }
    return begun
  }
}
