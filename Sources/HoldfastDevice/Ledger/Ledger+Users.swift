import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// What the owner of a device does with its users. Each is audited.
extension Ledger {
  /// How long the owner's codes are good, in seconds.
  public static let codeLifetimeSeconds: UInt64 = 600
  /// How many of the owner's codes may wait to be used.
  static let codeLimit: UInt64 = 64

  /// Makes the code by which a user is activated, for ten minutes and one use; an earlier one of that user is good no longer.
  ///
  /// - Parameters:
  ///   - otp: how the user's one-time passwords are made; nil for none.
  ///   - seal: how the user's seals are made; nil for none.
  ///   - replaces: whether a user of that name may be there already. They are replaced when the code is used.
  ///   - realClock: Unix seconds.
  /// - Throws: `userExists`, `tooManyUsers`, `tooManyCodes`, `unsupportedMethod`, `busy`, `failed`, and `rolledBack` or
  ///   `counter` where the ledger is anchored.
  public func issueActivation<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, otp: CodeMethod?, seal: CodeMethod?, replaces: Bool, realClock: UInt64?,
    random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    guard otp != nil || seal != nil, otp.map({ CodeAccount.canVerify($0, for: .otp) }) ?? true,
      seal.map({ CodeAccount.canVerify($0, for: .seal) }) ?? true
    else { throw .unsupportedMethod }
    let limit = limits.userCount
    return try issue(.activation, user, otp: otp, seal: seal, realClock: realClock, random: &random) {
      (tables) throws(DatabaseError) in
      if try tables.user(named: user) != nil { return replaces ? nil : .userExists }
      return try tables.userCount() < limit ? nil : .tooManyUsers
    }
  }

  /// Makes the code by which a user who is locked out may try again, for ten minutes and one use.
  ///
  /// `realClock` is in Unix seconds. Throws `unknownUser`, `tooManyCodes`, `busy`, `failed`, and `rolledBack` or `counter`
  /// where the ledger is anchored.
  public func issueUnlock<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    try issue(.unlock, user, otp: nil, seal: nil, realClock: realClock, random: &random) {
      (tables) throws(DatabaseError) in try tables.user(named: user) == nil ? .unknownUser : nil
    }
  }

  private func issue<Random: RandomSource & ~Copyable>(
    _ purpose: OneUseCode.Purpose, _ user: BoundedText<32>, otp: CodeMethod?, seal: CodeMethod?, realClock: UInt64?,
    random: inout Random, unless objection: (borrowing LedgerTables) throws(DatabaseError) -> LedgerFault?
  ) throws(LedgerFault) -> OneUseCode {
    let code: OneUseCode
    do throws(RandomFailure) { code = try OneUseCode.random(using: &random) } catch { throw .failed }
    var cryptography = OpenSSLCryptography()
    let key: Secret<32>
    do throws(CryptographyFailure) { key = try code.key(for: purpose, using: &cryptography) } catch { throw .failed }
    let keyBytes = key.withBytes { Value.copying($0) }
    let fault = try change { (tables, state) throws(DatabaseError) -> LedgerFault? in
      let now = state.time(realClock: realClock)
      if let fault = try objection(tables) { return fault }
      try tables.deleteCodes(expiredAt: now, of: user, purpose)
      guard try tables.codeCount() < Self.codeLimit else { return .tooManyCodes }
      try tables.insertCode(
        purpose, key: keyBytes, user, expires: now + Self.codeLifetimeSeconds, otp: otp, seal: seal)
      try tables.append(.codeIssued(purpose, user), time: now, to: &state)
      return nil
    }
    if let fault { throw fault }
    return code
  }

  /// Adds a user whose secrets were made elsewhere.
  ///
  /// `realClock` is in Unix seconds. Throws `userExists` unless `replaces`, `tooManyUsers`, `unsupportedMethod`, `busy`,
  /// `failed`, and `rolledBack` or `counter` where the ledger is anchored.
  public func addUser(
    _ user: BoundedText<32>, _ accounts: [NewAccount], replaces: Bool, realClock: UInt64?
  ) throws(LedgerFault) {
    guard !accounts.isEmpty, accounts.allSatisfy({ CodeAccount.canVerify($0.method, for: $0.purpose) })
    else { throw .unsupportedMethod }
    let limit = limits.userCount
    let fault = try change { (tables, state) throws(DatabaseError) -> LedgerFault? in
      let isThere = try tables.user(named: user) != nil
      guard replaces || !isThere else { return .userExists }
      let userCount = try tables.userCount()
      guard isThere || userCount < limit else { return .tooManyUsers }
      // A code of that name that waits to be used, too: it would take the place of what is added now.
      try tables.deleteUser(user)
      let now = state.time(realClock: realClock)
      let id = try tables.insertUser(user, now: now)
      for account in accounts {
        try account.secret.withBytes { (secret) throws(DatabaseError) in
          try tables.insertAccount(
            account.purpose, account.method, nextPosition: account.nextPosition, secret: secret, of: id)
        }
      }
      try tables.append(.userAdded(user), time: now, to: &state)
      return nil
    }
    if let fault { throw fault }
  }

  /// Forgets a user, secrets and the owner's codes for them; says whether there was anything of that name.
  ///
  /// `realClock` is in Unix seconds. Throws `busy`, `failed`, and `rolledBack` or `counter` where the ledger is anchored.
  @discardableResult
  public func removeUser(_ user: BoundedText<32>, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (tables, state) throws(DatabaseError) in
      guard try tables.deleteUser(user) else { return false }
      try tables.append(.userRemoved(user), time: state.time(realClock: realClock), to: &state)
      return true
    }
  }

  /// The users, by name. Throws `busy`, `failed`.
  public func users() throws(LedgerFault) -> [LedgerUser] {
    try look { (tables) throws(DatabaseError) in
      var users: [LedgerUser] = []
      for name in try tables.users() {
        guard let record = try tables.user(named: name) else { continue }
        users.append(LedgerUser(name: name, record: record))
      }
      return users
    }
  }
}

/// A user, as the owner sees them.
public struct LedgerUser: Sendable, Equatable {
  public let name: BoundedText<32>
  public let record: UserRecord
}

/// An account whose secret was made elsewhere.
public final class NewAccount: Sendable {
  let purpose: CodePurpose
  let method: CodeMethod
  let nextPosition: UInt64
  let secret: SecretBytes

  /// Nil unless `secret` has 1 to 64 bytes and `nextPosition` is at most 2^53 - 1.
  public init?(purpose: CodePurpose, method: CodeMethod, nextPosition: UInt64 = 0, secret: consuming SecretBytes) {
    guard (1...64).contains(secret.count), nextPosition <= maximumInteger else { return nil }
    self.purpose = purpose
    self.method = method
    self.nextPosition = nextPosition
    self.secret = secret
  }
}
