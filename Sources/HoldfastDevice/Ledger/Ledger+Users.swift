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
    guard DrawnCode.canActivate(otp: otp, seal: seal) else { throw .unsupportedMethod }
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
    let drawn = try DrawnCode(purpose, random: &random)
    let keyBytes = drawn.key.withBytes { Value.copying($0) }
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
    return drawn.intoCode()
  }

  /// Adds a user whose secrets were made elsewhere. No code that the device has used up counts again: where a user is replaced
  /// with the same secret, it begins no sooner than that one was.
  ///
  /// `realClock` is in Unix seconds. Throws `userExists` unless `replaces`, `tooManyUsers`, `unsupportedMethod`, `busy`,
  /// `failed`, and `rolledBack` or `counter` where the ledger is anchored.
  public func addUser(
    _ user: BoundedText<32>, _ accounts: [NewAccount], replaces: Bool, realClock: UInt64?
  ) throws(LedgerFault) {
    guard !accounts.isEmpty, accounts.allSatisfy(\.isVerifiable)
    else { throw .unsupportedMethod }
    let limit = limits.userCount
    let fault = try change { (tables, state) throws(DatabaseError) -> LedgerFault? in
      let known = try tables.user(named: user)
      guard replaces || known == nil else { return .userExists }
      let userCount = try tables.userCount()
      guard known != nil || userCount < limit else { return .tooManyUsers }
      let begun = try accounts.map { (account) throws(DatabaseError) in
        guard let known, let secret = try tables.secret(account.purpose, of: known.id) else { return account.account }
        return account.account(after: known, secret)
      }
      // A code of that name that waits to be used, too: it would take the place of what is added now.
      try tables.deleteUser(user)
      let now = state.time(realClock: realClock)
      let id = try tables.insertUser(user, now: now)
      for (account, begun) in zip(accounts, begun) {
        try account.secret.withBytes { (secret) throws(DatabaseError) in
          try tables.insertAccount(
            account.purpose, begun.method, nextPosition: begun.nextPosition, secret: secret, of: id)
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

extension Ledger {
  /// The owner's codes that are kept. Throws `busy`, `failed`.
  public func openCodes() throws(LedgerFault) -> [OpenCode] {
    try look { (tables) throws(DatabaseError) in
      var codes: [OpenCode] = []
      while let code = try tables.code(at: codes.count) { codes.append(OpenCode(code)) }
      return codes
    }
  }
}

/// One of the owner's codes that waits to be used, without the code.
public struct OpenCode: Sendable, Equatable {
  /// Whether it activates the user, or unlocks them.
  public let purpose: OneUseCode.Purpose
  /// Whose it is.
  public let user: BoundedText<32>
  /// Unix seconds; it is no longer good from then on.
  public let expires: UInt64

  init(_ record: borrowing OneUseCodeRecord) {
    (purpose, user, expires) = (record.purpose, record.user, record.expires)
  }
}

/// A user, as the owner sees them.
public struct LedgerUser: Sendable, Equatable {
  public let name: BoundedText<32>
  public let record: UserRecord
}
