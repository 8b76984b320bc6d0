import HoldfastCore
import HoldfastFirmware
import HoldfastFormats
import HoldfastOpenSSL

/// Whom the device trusts, its floors, and what it says of itself.
extension FirmwareImage {
  package func summary() throws(LedgerFault) -> LedgerSummary {
    try look { (store, _) throws(LedgerFault) in
      LedgerSummary(
        clockFloor: try store.attempt { (store) throws(StoreFailure) in try store.clockFloor() },
        bootCount: store.bootCount, keptCount: UInt64(store.keptCount), userCount: UInt64(store.userCount),
        audit: store.audit)
    }
  }

  /// Which half of the journal is in force, 1 or 2, and how many of its bytes are used.
  package func slotUse() throws(LedgerFault) -> (number: Int, usedByteCount: Int, byteCount: Int) {
    try look { (store, _) in store.slotUse }
  }

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

  /// Throws `tooManyIssuers` beyond 8, or where there is no room for the generation floors of more keys.
  package func trust(_ issuer: borrowing IssuerKey, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (store, provision) throws(LedgerFault) in
      try Self.trust(issuer, in: &store, &provision, realClock: realClock)
    }
  }

  static func trust(
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
    guard try store.attempt({ (store) throws(StoreFailure) in try store.canKeepFloors(of: provision.issuers) }) else {
      throw .tooManyIssuers
    }
    try store.attempt { (store) throws(StoreFailure) in try store.note(.issuerTrusted(keyID), realClock: realClock) }
    return true
  }

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
      try store.attempt { (store) throws(StoreFailure) in try store.note(.issuerRemoved(keyID), realClock: realClock) }
      return true
    }
  }

  /// Only ahead: throws `floorOnlyRises` otherwise.
  package func moveClockFloor(to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    return try change { (store, _) throws(LedgerFault) in
      let from = try store.attempt { (store) throws(StoreFailure) in try store.clockFloor() }
      guard floor != from else { return from }
      guard floor > from else { throw .floorOnlyRises }
      try store.attempt { (store) throws(StoreFailure) in
        try store.raiseClockFloor(to: floor, realClock: realClock)
      }
      return from
    }
  }

  /// Only ahead: throws `floorOnlyRises` otherwise.
  package func moveGenerationFloor(
    of keyID: KeyID, to floor: UInt64, realClock: UInt64?
  ) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    return try change { (store, provision) throws(LedgerFault) in
      let from = try store.floor(of: keyID)
      guard provision.issuers[keyID] != nil || from > 0 else { throw .unknownIssuer }
      guard floor != from else { return from }
      guard floor > from else { throw .floorOnlyRises }
      try store.attempt { (store) throws(StoreFailure) in
        try store.raiseGenerationFloor(of: keyID, to: floor, realClock: realClock)
      }
      return from
    }
  }
}

extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Runs a step of the store. It works in memory, so that it fails only over what was never written there.
  mutating func attempt<Result: ~Copyable>(
    _ step: (inout Self) throws(StoreFailure) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(StoreFailure) { return try step(&self) } catch { throw .damaged }
  }

  fileprivate func floor(of keyID: KeyID) throws(LedgerFault) -> UInt64 {
    do throws(EncodingFault) { return try generationFloor(of: keyID) } catch { throw .damaged }
  }
}

/// The users whose codes the device takes.
extension FirmwareImage {
  /// How often codes made from the time may change at most, in seconds: for a wrong one the device computes those of an hour to
  /// either side, and with SHA-512 in steps of a second that is a quarter of a minute.
  package static let shortestTimeStepSeconds: UInt64 = 10

  private static func checkTimeSteps(_ methods: [CodeMethod?]) throws(LedgerFault) {
    for method in methods {
      guard let step = method?.timeStepSeconds else { continue }
      guard step >= shortestTimeStepSeconds else { throw .timeStepTooShort }
    }
  }

  package func users() throws(LedgerFault) -> [LedgerUser] {
    try look { (store, _) throws(LedgerFault) in
      var users: [LedgerUser] = []
      for place in 0..<Store.userLimit {
        guard let user = try store.attempt({ (store) throws(StoreFailure) in try store.user(at: place) }) else {
          continue
        }
        users.append(LedgerUser(name: user.name, record: user.record))
      }
      return users.sorted { "\($0.name)" < "\($1.name)" }
    }
  }

  package func openCodes() throws(LedgerFault) -> [OpenCode] {
    try look { (store, _) throws(LedgerFault) in
      try store.attempt { (store) throws(StoreFailure) in
        var codes: [OpenCode] = []
        while let code = try store.oneUseCode(at: codes.count) { codes.append(OpenCode(code)) }
        return codes
      }
    }
  }

  package func issueActivation<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, otp: CodeMethod?, seal: CodeMethod?, replaces: Bool, realClock: UInt64?,
    random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    guard DrawnCode.canActivate(otp: otp, seal: seal) else { throw .unsupportedMethod }
    try Self.checkTimeSteps([otp, seal])
    let drawn = try DrawnCode(.activation, random: &random)
    try change { (store, _) throws(LedgerFault) in
      _ = try store.placeForUser(user, replaces: replaces)
      try store.issue(.activation, drawn, user, otp: otp, seal: seal, realClock: realClock)
    }
    return drawn.intoCode()
  }

  package func issueUnlock<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    let drawn = try DrawnCode(.unlock, random: &random)
    try change { (store, _) throws(LedgerFault) in
      guard try store.knownUser(user) != nil else { throw .unknownUser }
      try store.issue(.unlock, drawn, user, otp: nil, seal: nil, realClock: realClock)
    }
    return drawn.intoCode()
  }

  package func addUser(
    _ user: BoundedText<32>, _ accounts: [NewAccount], replaces: Bool, realClock: UInt64?
  ) throws(LedgerFault) {
    guard !accounts.isEmpty, accounts.allSatisfy(\.isVerifiable) else { throw .unsupportedMethod }
    try Self.checkTimeSteps(accounts.map(\.account.method))
    let otp = accounts.first { $0.purpose == .otp }
    let seal = accounts.first { $0.purpose == .seal }
    try change { (store, _) throws(LedgerFault) in
      let known = try store.placeForUser(user, replaces: replaces)
      let otpAccount = try otp.map { (otp) throws(LedgerFault) in try store.account(otp, after: known) }
      let sealAccount = try seal.map { (seal) throws(LedgerFault) in try store.account(seal, after: known) }
      let otpSecret = otp?.secretCopy() ?? CodeSecret()
      let sealSecret = seal?.secretCopy() ?? CodeSecret()
      do throws(StoreFailure) {
        try store.addUser(
          user, otp: otpAccount, otpSecret: otpSecret.bytes, seal: sealAccount, sealSecret: sealSecret.bytes,
          realClock: realClock)
      } catch { throw .damaged }
    }
  }

  package func removeUser(_ user: BoundedText<32>, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (store, _) throws(LedgerFault) in
      try store.attempt { (store) throws(StoreFailure) in try store.removeUser(user, realClock: realClock) }
    }
  }
}

extension FirmwareImage.Store {
  fileprivate mutating func knownUser(_ name: BoundedText<32>) throws(LedgerFault) -> UserRecord? {
    try attempt { (store) throws(StoreFailure) in try store.user(named: name) }
  }

  /// The user whose place one of that name takes; nil where there is a free place.
  fileprivate mutating func placeForUser(
    _ name: BoundedText<32>, replaces: Bool
  ) throws(LedgerFault) -> UserRecord? {
    let known = try knownUser(name)
    guard replaces || known == nil else { throw .userExists }
    guard known != nil || userCount < Self.userLimit else { throw .tooManyUsers }
    return known
  }

  fileprivate mutating func issue(
    _ purpose: OneUseCode.Purpose, _ drawn: borrowing DrawnCode, _ user: BoundedText<32>, otp: CodeMethod?,
    seal: CodeMethod?, realClock: UInt64?
  ) throws(LedgerFault) {
    let isIssued: Bool
    do throws(StoreFailure) {
      isIssued = try issueCode(
        purpose, key: drawn.key, user: user, lifetimeSeconds: Ledger.codeLifetimeSeconds, otp: otp, seal: seal,
        realClock: realClock)
    } catch { throw .damaged }
    guard isIssued else { throw .tooManyCodes }
  }

  fileprivate mutating func account(
    _ new: NewAccount, after known: UserRecord?
  ) throws(LedgerFault) -> CodeAccount {
    guard let known else { return new.account }
    return try attempt { (store) throws(StoreFailure) in
      guard let secret = try store.codeSecret(of: known.id, new.purpose) else { return new.account }
      return new.account(after: known, secret)
    }
  }
}

/// The newest entries of the audit log: a device drops older ones, and keeps the hash that they led to.
extension FirmwareImage: OwnerLedger {
  package func auditEntries(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditEntry] {
    try look { (store, _) throws(LedgerFault) in
      var entries: [AuditEntry] = []
      try store.attempt { (store) throws(StoreFailure) in
        try store.forEachAuditEntry { (entry, chain) in
          if let entry, chain.count > sequence, entries.count < limit { entries.append(entry) }
        }
      }
      return entries
    }
  }

  /// Whoever can write the file can make a whole new chain: compare the head with one that was noted elsewhere.
  package func verifyAudit() throws(LedgerFault) -> AuditReport {
    try look { (store, _) throws(LedgerFault) in
      var report = AuditReport(recorded: store.audit)
      var firstKept: UInt64?
      try store.attempt { (store) throws(StoreFailure) in
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
