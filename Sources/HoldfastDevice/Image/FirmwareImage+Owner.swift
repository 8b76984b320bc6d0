import HoldfastCore
import HoldfastFirmware
import HoldfastFormats
import HoldfastOpenSSL

/// The owner's view of the device: its trusted issuers, its floors, and a summary.
extension FirmwareImage {
  /// Returns the floors, counts and the audit head.
  ///
  /// - Throws: `damaged` if the image cannot be read.
  package func summary() throws(LedgerFault) -> LedgerSummary {
    try look { (store, _) throws(LedgerFault) in
      LedgerSummary(
        clockFloor: try store.attempt { (store) throws(DeviceFault) in try store.clockFloor() },
        bootCount: store.bootCount, keptCount: UInt64(store.keptCount), userCount: UInt64(store.userCount),
        audit: store.audit, acknowledgedAuditCount: store.acknowledged)
    }
  }

  /// Returns the slot of the journal that is in force, 1 or 2, the number of its used bytes, and its length.
  package func slotUse() throws(LedgerFault) -> (number: Int, usedByteCount: Int, byteCount: Int) {
    try look { (store, _) in store.slotUse }
  }

  /// Returns the trusted issuers, by key id.
  package func issuers() throws(LedgerFault) -> [TrustedIssuer] {
    try look { (store, provision) throws(LedgerFault) in
      var issuers: [TrustedIssuer] = []
      for index in 0..<provision.issuers.count {
        let keyID = provision.issuers.keyID(index)
        guard let key = provision.issuers[keyID] else { throw .damaged }
        issuers.append(
          TrustedIssuer(
            keyID: keyID, algorithm: IssuerAlgorithm(of: key), generationFloor: try store.floor(of: keyID)))
      }
      return issuers.sorted { hexadecimal($0.keyID) < hexadecimal($1.keyID) }
    }
  }

  /// Trusts an issuer. Returns whether it is new. `realClock` is in Unix seconds.
  ///
  /// - Throws: `tooManyIssuers` beyond 8, or if there is no room for the generation floors of more keys, `keyIDTaken` for
  ///   another key with the same id, `damaged`, `unwritable`, `failed`.
  package func trust(_ issuer: borrowing IssuerKey, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (store, provision) throws(LedgerFault) in
      try Self.trust(issuer, in: &store, &provision, realClock: realClock)
    }
  }

  package static func trust(
    _ issuer: borrowing IssuerKey, in store: inout Store, _ provision: inout Provision, realClock: UInt64?
  ) throws(LedgerFault) -> Bool {
    let keyID: KeyID
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      keyID = try HoldfastCore.keyID(of: issuer, using: &cryptography)
    } catch { throw .failed }
    if let known = provision.issuers[keyID] {
      guard known.isSame(as: issuer) else { throw .keyIDTaken }
      return false
    }
    guard provision.issuers.append(keyID, issuer) else { throw .tooManyIssuers }
    guard try store.attempt({ (store) throws(DeviceFault) in try store.canKeepFloors(of: provision.issuers) }) else {
      throw .tooManyIssuers
    }
    try store.attempt { (store) throws(DeviceFault) in try store.note(.issuerTrusted(keyID), realClock: realClock) }
    return true
  }

  /// Stops trusting an issuer. Returns whether it was trusted. Its generation floor stays. `realClock` is in Unix seconds.
  ///
  /// - Throws: `damaged`, `unwritable`, `failed`.
  package func removeTrust(_ keyID: KeyID, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (store, provision) throws(LedgerFault) in
      guard provision.issuers[keyID] != nil else { return false }
      var others = IssuerTable()
      for index in 0..<provision.issuers.count {
        let other = provision.issuers.keyID(index)
        guard other != keyID else { continue }
        guard let key = provision.issuers[other], others.append(other, key) else { throw .failed }
      }
      provision.issuers = others
      if provision.home?.keyID == keyID { provision.home?.agreementKey = nil }
      try store.attempt { (store) throws(DeviceFault) in try store.note(.issuerRemoved(keyID), realClock: realClock) }
      return true
    }
  }

  /// Records the key for agreement that an issuer announced next to its key. Returns false if it is known, or if the issuer is not
  /// the home of the audit log or not trusted: a microcontroller has no room for others.
  ///
  /// - Throws: `damaged`, `unwritable`.
  @discardableResult
  package func setAgreementKey(_ point: P256Point, of issuer: KeyID) throws(LedgerFault) -> Bool {
    try change { (_, provision) throws(LedgerFault) in
      guard let home = provision.home, home.keyID == issuer, home.agreementKey != point,
        provision.issuers[issuer] != nil
      else { return false }
      provision.home?.agreementKey = point
      return true
    }
  }

  /// Raises the clock floor, in Unix seconds. Returns the previous floor. `realClock` is in Unix seconds.
  ///
  /// - Throws: `floorOnlyRises` for a lower floor, `floorOutOfRange` beyond 2^53 - 1, `damaged`, `unwritable`.
  package func moveClockFloor(to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    return try change { (store, _) throws(LedgerFault) in
      let from = try store.attempt { (store) throws(DeviceFault) in try store.clockFloor() }
      guard floor != from else { return from }
      guard floor > from else { throw .floorOnlyRises }
      try store.attempt { (store) throws(DeviceFault) in
        try store.raiseClockFloor(to: floor, realClock: realClock)
      }
      return from
    }
  }

  /// Raises the generation floor of a key. Returns the previous floor. `realClock` is in Unix seconds.
  ///
  /// - Throws: `floorOnlyRises` for a lower floor, `floorOutOfRange` beyond 2^53 - 1, `unknownIssuer`, `damaged`,
  ///   `unwritable`.
  package func moveGenerationFloor(
    of keyID: KeyID, to floor: UInt64, realClock: UInt64?
  ) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    return try change { (store, provision) throws(LedgerFault) in
      let from = try store.floor(of: keyID)
      guard provision.issuers[keyID] != nil || from > 0 else { throw .unknownIssuer }
      guard floor != from else { return from }
      guard floor > from else { throw .floorOnlyRises }
      try store.attempt { (store) throws(DeviceFault) in
        try store.raiseGenerationFloor(of: keyID, to: floor, realClock: realClock)
      }
      return from
    }
  }
}

extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Runs a step of the store. The store works in memory, so a step fails only if the image holds invalid bytes.
  package mutating func attempt<Result: ~Copyable>(
    _ step: (inout Self) throws(DeviceFault) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(DeviceFault) { return try step(&self) } catch { throw .damaged }
  }

  fileprivate func floor(of keyID: KeyID) throws(LedgerFault) -> UInt64 {
    do throws(EncodingFault) { return try generationFloor(of: keyID) } catch { throw .damaged }
  }
}

/// The users whose codes the device accepts.
extension FirmwareImage {
  /// The shortest time step of codes made from the time, in seconds. For a wrong code, the device computes the codes of an
  /// hour to either side. With SHA-512 and steps of a second, that takes a quarter of a minute.
  package static let shortestTimeStepSeconds: UInt64 = 10

  private static func checkTimeSteps(_ methods: [CodeMethod?]) throws(LedgerFault) {
    for method in methods {
      guard let step = method?.timeStepSeconds else { continue }
      guard step >= shortestTimeStepSeconds else { throw .timeStepTooShort }
    }
  }

  /// Returns the users, by name.
  ///
  /// - Throws: `damaged` if the image cannot be read.
  package func users() throws(LedgerFault) -> [LedgerUser] {
    try look { (store, _) throws(LedgerFault) in
      var users: [LedgerUser] = []
      for place in 0..<Store.userLimit {
        guard let user = try store.attempt({ (store) throws(DeviceFault) in try store.user(at: place) }) else {
          continue
        }
        users.append(LedgerUser(name: user.name, record: user.record))
      }
      return users.sorted { "\($0.name)" < "\($1.name)" }
    }
  }

  /// Returns the owner's codes in the store, in the order in which they were made. Expired ones may be among them.
  ///
  /// - Throws: `damaged` if the image cannot be read.
  package func openCodes() throws(LedgerFault) -> [OpenCode] {
    try look { (store, _) throws(LedgerFault) in
      try store.attempt { (store) throws(DeviceFault) in
        var codes: [OpenCode] = []
        while let code = try store.oneUseCode(at: codes.count) { codes.append(OpenCode(code)) }
        return codes
      }
    }
  }

  /// Makes the code that activates a user; see ``Ledger/issueActivation(of:_:replaces:terms:realClock:random:)``.
  ///
  /// - Throws: `notOnBoards` for a demand or a spare; `unsupportedMethod`, `timeStepTooShort`, `userExists`, `tooManyUsers`, `tooManyCodes`, `damaged`,
  ///   `unwritable`, `failed`.
  package func issueActivation<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, _ methods: ByPurpose<CodeMethod>, replaces: Bool, terms: ActivationTerms,
    realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    guard terms.demand == nil, terms.main == nil else { throw .notOnBoards }
    guard DrawnCode.canActivate(methods), !methods.isBoundToConnection else { throw .unsupportedMethod }
    try Self.checkTimeSteps(CodePurpose.allCases.map { methods[$0] })
    let drawn = try DrawnCode(.activation, random: &random)
    try change { (store, _) throws(LedgerFault) in
      _ = try store.placeForUser(user, replaces: replaces)
      try store.issue(.activation, drawn, user, methods, realClock: realClock)
    }
    return drawn.intoCode()
  }

  /// Makes the code that unlocks a user; see ``Ledger/issueUnlock(of:realClock:random:)``.
  ///
  /// - Throws: `unknownUser`, `tooManyCodes`, `damaged`, `unwritable`, `failed`.
  package func issueUnlock<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    let drawn = try DrawnCode(.unlock, random: &random)
    try change { (store, _) throws(LedgerFault) in
      guard try store.knownUser(user) != nil else { throw .unknownUser }
      try store.issue(.unlock, drawn, user, ByPurpose(), realClock: realClock)
    }
    return drawn.intoCode()
  }

  /// Adds a user whose secrets were made elsewhere; see ``Ledger/addUser(_:_:replaces:realClock:)``.
  ///
  /// - Throws: `unsupportedMethod`, `timeStepTooShort`, `userExists`, `tooManyUsers`, `damaged`, `unwritable`.
  package func addUser(
    _ user: BoundedText<32>, _ accounts: [NewAccount], replaces: Bool, realClock: UInt64?
  ) throws(LedgerFault) {
    guard !accounts.isEmpty, accounts.allSatisfy({ $0.isVerifiable && !$0.isBoundToConnection }) else {
      throw .unsupportedMethod
    }
    try Self.checkTimeSteps(accounts.map(\.account.method))
    try change { (store, _) throws(LedgerFault) in
      let known = try store.placeForUser(user, replaces: replaces)
      var begun = ByPurpose<CodeAccount>()
      for account in accounts { begun[account.purpose] = try store.account(account, after: known) }
      do throws(DeviceFault) {
        try store.addUser(user, begun, realClock: realClock) { purpose in
          accounts.first { $0.purpose == purpose }?.secretCopy() ?? CodeSecret()
        }
      } catch { throw .damaged }
    }
  }

  /// Locks a user until a time by the device's clock, in Unix seconds; see ``Ledger/lockUser(_:until:realClock:)``.
  ///
  /// - Throws: `floorOutOfRange`, `unknownUser`, `damaged`, `unwritable`.
  package func lockUser(_ user: BoundedText<32>, until: UInt64, realClock: UInt64?) throws(LedgerFault) {
    guard until <= maximumInteger else { throw .floorOutOfRange }
    let isKnown = try change { (store, _) throws(LedgerFault) in
      try store.attempt { (store) throws(DeviceFault) in
        try store.lockUser(user, until: until, realClock: realClock)
      }
    }
    guard isKnown else { throw .unknownUser }
  }

  /// Removes a user and the owner's codes for them. Returns whether there was a user or a code with that name.
  ///
  /// - Throws: `damaged`, `unwritable`.
  package func removeUser(_ user: BoundedText<32>, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (store, _) throws(LedgerFault) in
      try store.attempt { (store) throws(DeviceFault) in try store.removeUser(user, realClock: realClock) }
    }
  }
}

extension ByPurpose<CodeMethod> {
  /// Whether the one-time passwords are over a challenge, which a board cannot verify.
  fileprivate var isBoundToConnection: Bool {
    self[.otp].map { CodeAccount(method: $0).isBoundToConnection(for: .otp) } ?? false
  }
}

extension FirmwareImage.Store {
  fileprivate mutating func knownUser(_ name: BoundedText<32>) throws(LedgerFault) -> UserRecord? {
    try attempt { (store) throws(DeviceFault) in try store.user(named: name) }
  }

  /// Returns the user that a new one of that name replaces; nil if a place is free.
  fileprivate mutating func placeForUser(
    _ name: BoundedText<32>, replaces: Bool
  ) throws(LedgerFault) -> UserRecord? {
    let known = try knownUser(name)
    guard replaces || known == nil else { throw .userExists }
    guard known != nil || userCount < Self.userLimit else { throw .tooManyUsers }
    return known
  }

  fileprivate mutating func issue(
    _ purpose: OneUseCode.Purpose, _ drawn: borrowing DrawnCode, _ user: BoundedText<32>,
    _ methods: ByPurpose<CodeMethod>, realClock: UInt64?
  ) throws(LedgerFault) {
    let isIssued: Bool
    do throws(DeviceFault) {
      isIssued = try issueCode(
        purpose, key: drawn.key, user: user, lifetimeSeconds: Ledger.codeLifetimeSeconds, methods: methods,
        realClock: realClock)
    } catch { throw .damaged }
    guard isIssued else { throw .tooManyCodes }
  }

  fileprivate mutating func account(
    _ new: NewAccount, after known: UserRecord?
  ) throws(LedgerFault) -> CodeAccount {
    guard let known else { return new.account }
    return try attempt { (store) throws(DeviceFault) in
      guard let secret = try store.codeSecret(of: known.id, new.purpose) else { return new.account }
      return new.account(after: known, secret)
    }
  }
}

/// The newest entries of the audit log. A device drops older ones, and keeps the hash that they led to.
extension FirmwareImage: OwnerLedger {
  /// Returns at most `limit` entries, from the one after `sequence` on. Entries that cannot be decoded are left out.
  ///
  /// - Throws: `damaged` if the image cannot be read.
  package func auditEntries(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditEntry] {
    try look { (store, _) throws(LedgerFault) in
      var entries: [AuditEntry] = []
      try store.attempt { (store) throws(DeviceFault) in
        try store.forEachAuditEntry { (entry, chain) in
          if let entry, chain.count > sequence, entries.count < limit { entries.append(entry) }
        }
      }
      return entries
    }
  }

  /// Finds the first audit entry that is missing, changed or out of place. Anyone who can write the file can make a whole new
  /// chain, so compare the head with one that was noted elsewhere.
  ///
  /// - Throws: `damaged` if the image cannot be read.
  package func verifyAudit() throws(LedgerFault) -> AuditReport {
    try look { (store, _) throws(LedgerFault) in
      var report = AuditReport(recorded: store.audit)
      var firstKept: UInt64?
      try store.attempt { (store) throws(DeviceFault) in
        try store.forEachAuditEntry { (entry, chain) in
          firstKept = firstKept ?? chain.count
          if entry?.sequence != chain.count { report.firstBroken = report.firstBroken ?? chain.count }
        }
      }
      report.firstKept = firstKept ?? 1
      return report
    }
  }
}
