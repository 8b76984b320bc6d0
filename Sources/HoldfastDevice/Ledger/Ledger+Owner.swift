import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// What the owner of a device does with its ledger, whether or not it is being served. Each is audited.
extension Ledger {
  /// Trusts an issuer; says whether it is new.
  ///
  /// Throws `tooManyIssuers` beyond 64 of both kinds, `keyIDTaken` for another key of the same id, `busy`, `failed`.
  /// `realClock` is in Unix seconds.
  @discardableResult
  package func trust(_ issuer: borrowing IssuerKey, realClock: UInt64?) throws(LedgerFault) -> Bool {
    let keyID: KeyID
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      keyID = try HoldfastCore.keyID(of: issuer, using: &cryptography)
    } catch { throw .failed }
    let limit = limits.issuerCount
    let outcome = try change { (tables, state) throws(DatabaseError) -> Result<Bool, LedgerFault> in
      if let known = try tables.issuer(keyID) {
        return known.isSame(as: issuer) ? .success(false) : .failure(.keyIDTaken)
      }
      guard try tables.issuerCount() < limit else { return .failure(.tooManyIssuers) }
      try tables.insertIssuer(keyID, issuer)
      try tables.append(.issuerTrusted(keyID), time: state.time(realClock: realClock), to: &state)
      return .success(true)
    }
    return try outcome.get()
  }

  /// Trusts an issuer no longer, from the next round on; says whether it was trusted. Its generation floor stays.
  ///
  /// Throws `busy`, `failed`. `realClock` is in Unix seconds.
  @discardableResult
  package func removeTrust(_ keyID: KeyID, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (tables, state) throws(DatabaseError) in
      guard try tables.deleteIssuer(keyID) else { return false }
      try tables.append(.issuerRemoved(keyID), time: state.time(realClock: realClock), to: &state)
      return true
    }
  }

  /// The trusted issuers, by key id. Throws `busy`, `failed`.
  package func issuers() throws(LedgerFault) -> [TrustedIssuer] {
    try look { (tables) throws(DatabaseError) in try tables.issuers() }
  }

  /// Moves the clock floor by hand, to `floor` in Unix seconds, ahead or back; returns where it was.
  ///
  /// Moved back, tokens that had expired may count again; those with `max`, and compatibility nonces, count as used up
  /// unless their record is still there. `realClock`, in Unix seconds, dates the audit entry. Throws `floorOutOfRange` beyond
  /// 2^53 - 1, `busy`, `failed`, and `rolledBack` or `counter` where the ledger is anchored.
  @discardableResult
  package func moveClockFloor(to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    return try change { (tables, state) throws(DatabaseError) in
      let from = state.clockFloor
      guard floor != from else { return from }
      if floor < from { state.forgottenThrough = max(state.forgottenThrough, from) }
      state.clockFloor = floor
      try tables.append(.clockFloorMoved(from: from, to: floor), time: state.time(realClock: realClock), to: &state)
      return from
    }
  }

  /// Moves the generation floor of a verifying key by hand, ahead or back; returns where it was.
  ///
  /// Moved back, tokens that were revoked count again. `realClock`, in Unix seconds, dates the audit entry. Throws
  /// `floorOutOfRange` beyond 2^53 - 1, `unknownIssuer`, `busy`, `failed`, and `rolledBack` or `counter` where the ledger is
  /// anchored.
  @discardableResult
  package func moveGenerationFloor(of keyID: KeyID, to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    let from = try change { (tables, state) throws(DatabaseError) -> UInt64? in
      let from = try tables.generationFloor(keyID)
      let isTrusted = try tables.isTrusted(keyID)
      guard isTrusted || from > 0 else { return nil }
      guard floor != from else { return from }
      try tables.setGenerationFloor(keyID, to: floor)
      try tables.append(
        .generationFloorMoved(keyID, from: from, to: floor), time: state.time(realClock: realClock), to: &state)
      return from
    }
    guard let from else { throw .unknownIssuer }
    return from
  }

  /// Gives the ledger to a device that is new: nothing is left but the count of starts and the audit log, which goes on.
  ///
  /// The clock floor begins at `realClock`, in Unix seconds, and an anchored ledger at the `epoch` of its new counter. Sound
  /// only because no token is encrypted to the new key yet.
  func reset(
    to deviceID: DeviceID, realClock: UInt64, epoch: UInt64? = nil, tpm: String? = nil
  ) throws(LedgerError) {
    try write { (tables, state) throws(DatabaseError) in
      try tables.forgetAll()
      (state.deviceID, state.clockFloor, state.forgottenThrough) = (deviceID, realClock, 0)
      (state.keptCount, state.requestCount, state.policySeen) = (0, 0, .none)
      (state.epoch, state.tpm) = (epoch, tpm)
      try tables.append(.reset(deviceID), time: realClock, to: &state)
    }
  }

  /// What there is to show. Throws `busy`, `failed`.
  package func summary() throws(LedgerFault) -> LedgerSummary {
    try look { (tables) throws(DatabaseError) in
      let state = try tables.state()
      return LedgerSummary(
        clockFloor: state.clockFloor, bootCount: state.bootCount, keptCount: state.keptCount,
        userCount: try tables.userCount(), audit: state.audit)
    }
  }

  func look<Result: Sendable>(
    _ body: (borrowing LedgerTables) throws(DatabaseError) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(DatabaseError) { return try read(body) } catch { throw LedgerFault(error) }
  }

  func change<Result: Sendable>(
    _ body: (borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(LedgerError) { return try write(body) } catch { throw LedgerFault(error) }
  }
}

/// What the owner of a device does with its users. Each is audited.
extension Ledger {
  /// How long the owner's codes are good, in seconds.
  package static let codeLifetimeSeconds: UInt64 = 600
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
  package func issueActivation<Random: RandomSource & ~Copyable>(
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
  package func issueUnlock<Random: RandomSource & ~Copyable>(
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
  package func addUser(
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
  package func removeUser(_ user: BoundedText<32>, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (tables, state) throws(DatabaseError) in
      guard try tables.deleteUser(user) else { return false }
      try tables.append(.userRemoved(user), time: state.time(realClock: realClock), to: &state)
      return true
    }
  }

  /// The users, by name. Throws `busy`, `failed`.
  package func users() throws(LedgerFault) -> [LedgerUser] {
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
  package func openCodes() throws(LedgerFault) -> [OpenCode] {
    try look { (tables) throws(DatabaseError) in
      var codes: [OpenCode] = []
      while let code = try tables.code(at: codes.count) { codes.append(OpenCode(code)) }
      return codes
    }
  }
}

/// One of the owner's codes that waits to be used, without the code.
package struct OpenCode: Sendable, Equatable {
  /// Whether it activates the user, or unlocks them.
  package let purpose: OneUseCode.Purpose
  /// Whose it is.
  package let user: BoundedText<32>
  /// Unix seconds; it is no longer good from then on.
  package let expires: UInt64

  init(_ record: borrowing OneUseCodeRecord) {
    (purpose, user, expires) = (record.purpose, record.user, record.expires)
  }
}

/// A user, as the owner sees them.
package struct LedgerUser: Sendable, Equatable {
  package let name: BoundedText<32>
  package let record: UserRecord
}
