import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// The owner's changes to a device's ledger, whether or not the device is being served. Each one is audited.
extension Ledger {
  /// Trusts an issuer. Returns whether it is new. `realClock` is in Unix seconds.
  ///
  /// - Throws: `tooManyIssuers` beyond 64 of both kinds, `keyIDTaken` for another key with the same id, `busy`, `failed`, and
  ///   `rolledBack` or `counter` if the ledger is anchored.
  @discardableResult
  package func trust(_ issuer: borrowing IssuerKey, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try trust(issuer, terms: nil, realClock: realClock)
  }

  /// Trusts an issuer on the owner's terms, or changes those that it has. What `terms` do not name stays as it is. Returns whether
  /// the issuer or its terms are new. `realClock` is in Unix seconds.
  ///
  /// - Throws: as ``trust(_:realClock:)`` does, and `emptyPeriod` if the trust would end before it begins.
  @discardableResult
  package func trust(
    _ issuer: borrowing IssuerKey, terms: TrustTerms?, realClock: UInt64?
  ) throws(LedgerFault) -> Bool {
    let keyID: KeyID
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      keyID = try HoldfastCore.keyID(of: issuer, using: &cryptography)
    } catch { throw .failed }
    let limit = limits.issuerCount
    let outcome = try change { (tables, state) throws(DatabaseError) -> Result<Bool, LedgerFault> in
      if let known = try tables.issuer(keyID) {
        guard known.isSame(as: issuer) else { return .failure(.keyIDTaken) }
        let earlier = try tables.terms(of: keyID)
        let changed = terms?.completed(by: earlier) ?? earlier
        let wasIntroduced = try tables.adopt(keyID)
        guard changed != earlier || wasIntroduced else { return .success(false) }
        guard changed.isPossible else { return .failure(.emptyPeriod) }
        try tables.save(changed, of: keyID)
      } else {
        guard terms?.isPossible ?? true else { return .failure(.emptyPeriod) }
        guard try tables.issuerCount() < limit else { return .failure(.tooManyIssuers) }
        try tables.insertIssuer(keyID, issuer)
        if let terms { try tables.save(terms, of: keyID) }
      }
      try tables.append(.issuerTrusted(keyID), time: state.time(realClock: realClock), to: &state)
      return .success(true)
    }
    return try outcome.get()
  }

  /// Stops trusting an issuer, from the next round on. Returns whether it was trusted. Its generation floor stays.
  /// `realClock` is in Unix seconds.
  ///
  /// - Throws: `busy`, `failed`, and `rolledBack` or `counter` if the ledger is anchored.
  @discardableResult
  package func removeTrust(_ keyID: KeyID, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (tables, state) throws(DatabaseError) in
      guard try tables.deleteIssuer(keyID) else { return false }
      try tables.append(.issuerRemoved(keyID), time: state.time(realClock: realClock), to: &state)
      return true
    }
  }

  /// Returns the trusted issuers, by key id.
  ///
  /// - Throws: `busy`, `failed`.
  package func issuers() throws(LedgerFault) -> [TrustedIssuer] {
    try look { (tables) throws(DatabaseError) in try tables.issuers() }
  }

  /// Moves the clock floor to `floor`, in Unix seconds, up or down. Returns the previous floor.
  ///
  /// After a move down, tokens that had expired may count again. Tokens with `max`, and compatibility nonces, count as used
  /// up unless their record is still there. `realClock`, in Unix seconds, dates the audit entry.
  ///
  /// - Throws: `floorOutOfRange` beyond 2^53 - 1, `busy`, `failed`, and `rolledBack` or `counter` if the ledger is anchored.
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

  /// Moves the generation floor of a verifying key, up or down. Returns the previous floor.
  ///
  /// After a move down, tokens that were revoked count again. `realClock`, in Unix seconds, dates the audit entry.
  ///
  /// - Throws: `floorOutOfRange` beyond 2^53 - 1, `unknownIssuer`, `busy`, `failed`, and `rolledBack` or `counter` if the
  ///   ledger is anchored.
  @discardableResult
  package func moveGenerationFloor(of keyID: KeyID, to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64
  {
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

  /// Gives the ledger to a new device. It keeps only the number of starts and the audit log, which continues.
  ///
  /// The clock floor begins at `realClock`, in Unix seconds, and an anchored ledger at the `epoch` of its new counter. This
  /// is sound only because no token is encrypted to the new key yet.
  func reset(
    to deviceID: DeviceID, realClock: UInt64, epoch: UInt64? = nil, tpm: String? = nil
  ) throws(LedgerError) {
    try write { (tables, state) throws(DatabaseError) in
      try tables.forgetAll()
      (state.deviceID, state.clockFloor, state.forgottenThrough) = (deviceID, realClock, 0)
      (state.keptCount, state.requestCount, state.acknowledged, state.policySeen) = (0, 0, 0, .none)
      (state.epoch, state.tpm) = (epoch, tpm)
      try tables.append(.reset(deviceID), time: realClock, to: &state)
    }
  }

  /// Returns the floors, counts and the audit head.
  ///
  /// - Throws: `busy`, `failed`.
  package func summary() throws(LedgerFault) -> LedgerSummary {
    try look { (tables) throws(DatabaseError) in
      let state = try tables.state()
      let runs = try tables.runs()
      return LedgerSummary(
        clockFloor: state.clockFloor, bootCount: state.bootCount, keptCount: state.keptCount,
        userCount: try tables.userCount(), audit: state.audit,
        keptAuditCount: state.audit.count - state.auditBase.count,
        acknowledgedAuditCount: state.acknowledged, disorderlyEnds: runs.disorderlyEnds,
        hasUnfinishedRun: runs.host != nil)
    }
  }

  package func look<Result: Sendable>(
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

/// The owner's changes to the device's users. Each one is audited.
extension Ledger {
  /// The lifetime of the owner's codes, in seconds.
  package static let codeLifetimeSeconds: UInt64 = 600
  /// The most of the owner's codes that may be pending.
  static let codeLimit = UInt64(Limit.ownerCodes.linux)

  /// Makes the code that activates a user. It is valid for ten minutes and one use, and invalidates an earlier one for that
  /// user.
  ///
  /// - Parameters:
  ///   - methods: the methods of the user's codes.
  ///   - replaces: whether a user of that name may exist already. The code's use then replaces that user, with all spare
  ///     authenticators.
  ///   - terms: what the code says in addition.
  ///   - realClock: the real clock, in Unix seconds.
  /// - Throws: `userExists`, `unknownUser` for terms about a user who does not exist, `badUserName`, `tooManyUsers`,
  ///   `tooManyCodes`, `unsupportedMethod`, `busy`, `failed`, and `rolledBack` or `counter` if the ledger is anchored.
  package func issueActivation<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, _ methods: ByPurpose<CodeMethod>, replaces: Bool, terms: ActivationTerms,
    realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    guard DrawnCode.canActivate(methods) else { throw .unsupportedMethod }
    guard terms.renews || terms.main != nil || user.canBeNewUser else { throw .badUserName }
    let limit = limits.userCount
    return try issue(.activation, user, methods, terms: terms, realClock: realClock, random: &random) {
      (tables) throws(DatabaseError) in
      if let main = terms.main {
        guard try tables.user(named: main) != nil, try tables.mainUser(of: main) == main else { return .unknownUser }
        guard user.isSpare(of: main) else { return .badUserName }
      }
      if terms.renews { return try tables.user(named: user) == nil ? .unknownUser : nil }
      if try tables.user(named: user) != nil { return replaces ? nil : .userExists }
      return try tables.hasUserRoom(limit: limit) ? nil : .tooManyUsers
    }
  }

  /// Makes the code that unlocks a user who is locked out. It is valid for ten minutes and one use. `realClock` is in Unix
  /// seconds.
  ///
  /// - Throws: `unknownUser`, `tooManyCodes`, `busy`, `failed`, and `rolledBack` or `counter` if the ledger is anchored.
  package func issueUnlock<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    try issue(.unlock, user, ByPurpose(), terms: ActivationTerms(), realClock: realClock, random: &random) {
      (tables) throws(DatabaseError) in try tables.user(named: user) == nil ? .unknownUser : nil
    }
  }

  private func issue<Random: RandomSource & ~Copyable>(
    _ purpose: OneUseCode.Purpose, _ user: BoundedText<32>, _ methods: ByPurpose<CodeMethod>, terms: ActivationTerms,
    realClock: UInt64?, random: inout Random,
    unless objection: (borrowing LedgerTables) throws(DatabaseError) -> LedgerFault?
  ) throws(LedgerFault) -> OneUseCode {
    let drawn = try DrawnCode(purpose, random: &random)
    let keyBytes = drawn.key.withBytes { Value.copying($0) }
    let fault = try change { (tables, state) throws(DatabaseError) -> LedgerFault? in
      let now = state.time(realClock: realClock)
      if let fault = try objection(tables) { return fault }
      try tables.deleteCodes(expiredAt: now, of: user, purpose)
      guard try tables.codeCount() < Self.codeLimit else { return .tooManyCodes }
      try tables.insertCode(
        purpose, key: keyBytes, user, expires: now + Self.codeLifetimeSeconds, methods: methods, terms: terms)
      try tables.append(.codeIssued(purpose, user), time: now, to: &state)
      return nil
    }
    if let fault { throw fault }
    return drawn.intoCode()
  }

  /// Adds a user whose secrets were made elsewhere. Codes that the device has used up stay used: a user who is replaced with
  /// the same secret begins no earlier than where the replaced one was. `realClock` is in Unix seconds.
  ///
  /// - Throws: `userExists` unless `replaces`, `badUserName`, `tooManyUsers`, `unsupportedMethod`, `busy`, `failed`, and
  ///   `rolledBack` or `counter` if the ledger is anchored.
  package func addUser(
    _ user: BoundedText<32>, _ accounts: [NewAccount], replaces: Bool, realClock: UInt64?
  ) throws(LedgerFault) {
    guard !accounts.isEmpty, accounts.allSatisfy(\.isVerifiable)
    else { throw .unsupportedMethod }
    guard user.canBeNewUser else { throw .badUserName }
    let limit = limits.userCount
    let fault = try change { (tables, state) throws(DatabaseError) -> LedgerFault? in
      let known = try tables.user(named: user)
      guard replaces || known == nil else { return .userExists }
      if known == nil, try !tables.hasUserRoom(limit: limit) { return .tooManyUsers }
      let begun = try accounts.map { (account) throws(DatabaseError) in
        guard let known, let secret = try tables.secret(account.purpose, of: known.id) else { return account.account }
        return account.account(after: known, secret)
      }
      // This deletes a pending code for the name as well: its use would replace the user that is added now.
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

  /// Locks a user until a time: the device looks at no code of any of the user's authenticators before. Codes of the owner's that wait for the user
  /// are withdrawn, and only a later one for unlocking ends the lock. `until` and `realClock` are in Unix seconds.
  ///
  /// - Throws: `floorOutOfRange` beyond 2^53 - 1, `unknownUser`, `busy`, `failed`, and `rolledBack` or `counter` if the ledger is
  ///   anchored.
  package func lockUser(_ user: BoundedText<32>, until: UInt64, realClock: UInt64?) throws(LedgerFault) {
    guard until <= maximumInteger else { throw .floorOutOfRange }
    let isKnown = try change { (tables, state) throws(DatabaseError) in
      try tables.lock(user, until: until, time: state.time(realClock: realClock), state: &state)
    }
    guard isKnown else { throw .unknownUser }
  }

  /// Removes a user with all authenticators, the user's secrets, and the owner's codes for the user; or only one spare
  /// authenticator, if `user` is its name. Returns whether there was a user or a code with that name. `realClock` is in Unix
  /// seconds.
  ///
  /// - Throws: `busy`, `failed`, and `rolledBack` or `counter` if the ledger is anchored.
  @discardableResult
  package func removeUser(_ user: BoundedText<32>, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (tables, state) throws(DatabaseError) in
      try tables.remove(user, time: state.time(realClock: realClock), state: &state)
    }
  }

  /// Returns the users, by name.
  ///
  /// - Throws: `busy`, `failed`.
  package func users() throws(LedgerFault) -> [LedgerUser] {
    try look { (tables) throws(DatabaseError) in
      var users: [LedgerUser] = []
      for name in try tables.users() {
        guard let record = try tables.user(named: name) else { continue }
        let main = try tables.mainUser(of: name)
        users.append(
          LedgerUser(name: name, record: record, main: main == name ? nil : main, demand: try tables.demand(of: name)))
      }
      return users
    }
  }
}

extension Ledger {
  /// Returns the owner's codes in the ledger, in the order in which they were made. Expired ones may be among them.
  ///
  /// - Throws: `busy`, `failed`.
  package func openCodes() throws(LedgerFault) -> [OpenCode] {
    try look { (tables) throws(DatabaseError) in
      var codes: [OpenCode] = []
      while let code = try tables.code(at: codes.count) {
        codes.append(OpenCode(code, try tables.terms(ofCode: code.id) ?? ActivationTerms()))
      }
      return codes
    }
  }
}

/// One of the owner's codes that is pending, without the code itself.
package struct OpenCode: Sendable, Equatable {
  /// The purpose of the code: activating or unlocking the user.
  package let purpose: OneUseCode.Purpose
  /// The name of the user for whom the code is.
  package let user: BoundedText<32>
  /// The time from which the code is no longer valid, in Unix seconds.
  package let expires: UInt64
  /// The code's demand, and the user whose spare authenticator it makes.
  package let terms: ActivationTerms

  init(_ record: borrowing OneUseCodeRecord, _ terms: ActivationTerms = ActivationTerms()) {
    (purpose, user, expires, self.terms) = (record.purpose, record.user, record.expires, terms)
  }
}

/// A user, as the owner sees them.
package struct LedgerUser: Sendable, Equatable {
  /// The user's name, at most 32 bytes.
  package let name: BoundedText<32>
  /// The user's failures, lockout and accounts, without secrets.
  package let record: UserRecord
  /// The user to whom this spare authenticator belongs; nil for the user's main authenticator.
  package let main: BoundedText<32>?
  /// The protection that the owner demanded when it was activated; nil for none.
  package let demand: ProtectionDemand?

  package init(
    name: BoundedText<32>, record: UserRecord, main: BoundedText<32>? = nil, demand: ProtectionDemand? = nil
  ) {
    (self.name, self.record, self.main, self.demand) = (name, record, main, demand)
  }
}
