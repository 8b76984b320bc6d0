import HoldfastCore
import HoldfastFirmware
import HoldfastOpenSSL

/// The users whose codes the device takes.
extension FirmwareImage {
  /// How often codes made from the time may change at most, in seconds: for a wrong one the device computes those of an hour to
  /// either side, and with SHA-512 in steps of a second that is a quarter of a minute.
  public static let shortestTimeStepSeconds: UInt64 = 10

  private static func checkTimeSteps(_ methods: [CodeMethod?]) throws(LedgerFault) {
    for method in methods {
      guard let step = method?.timeStepSeconds else { continue }
      guard step >= shortestTimeStepSeconds else { throw .timeStepTooShort }
    }
  }

  public func users() throws(LedgerFault) -> [LedgerUser] {
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

  public func openCodes() throws(LedgerFault) -> [OpenCode] {
    try look { (store, _) throws(LedgerFault) in
      try store.attempt { (store) throws(StoreFailure) in
        var codes: [OpenCode] = []
        while let code = try store.oneUseCode(at: codes.count) { codes.append(OpenCode(code)) }
        return codes
      }
    }
  }

  public func issueActivation<Random: RandomSource & ~Copyable>(
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

  public func issueUnlock<Random: RandomSource & ~Copyable>(
    of user: BoundedText<32>, realClock: UInt64?, random: inout Random
  ) throws(LedgerFault) -> OneUseCode {
    let drawn = try DrawnCode(.unlock, random: &random)
    try change { (store, _) throws(LedgerFault) in
      guard try store.knownUser(user) != nil else { throw .unknownUser }
      try store.issue(.unlock, drawn, user, otp: nil, seal: nil, realClock: realClock)
    }
    return drawn.intoCode()
  }

  public func addUser(
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

  public func removeUser(_ user: BoundedText<32>, realClock: UInt64?) throws(LedgerFault) -> Bool {
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
