import HoldfastOpenSSL
import HoldfastLinux
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

extension TestDevice {
  /// `unlock` needs a one-time password, `lock` a seal.
  func requireCodes() {
    policy.commands[BoundedText("unlock")]?.factors = [.device, .otp]
    policy.commands[BoundedText("lock")]?.factors = [.device, .seal]
  }

  func add(
    _ user: BoundedText<32> = ann, otp: CodeMethod? = hotpMethod, seal: CodeMethod? = counterSealMethod,
    secret: [UInt8] = usersSecret, nextPosition: UInt64 = 0, replaces: Bool = false
  ) throws {
    try ledger.add(user, otp: otp, seal: seal, secret: secret, nextPosition: nextPosition, replaces: replaces)
  }

  /// The ledger's record of a user.
  func record(of user: BoundedText<32> = ann) throws -> UserRecord? {
    try ledger.users().first { $0.name == user }?.record
  }

  /// The audit log's last events, the newest last.
  func lastEvents(_ count: UInt64) throws -> [AuditEvent] {
    let total = try ledger.summary().audit.count
    return try ledger.auditEntries(after: total - count, limit: count).map(\.event)
  }
}

extension OwnerLedger {
  func add(
    _ user: BoundedText<32>, otp: CodeMethod?, seal: CodeMethod?, secret: [UInt8] = usersSecret,
    nextPosition: UInt64 = 0, replaces: Bool = false
  ) throws {
    var accounts: [NewAccount] = []
    for (purpose, method) in [(CodePurpose.otp, otp), (.seal, seal)] {
      guard let method else { continue }
      let account = NewAccount(
        purpose: purpose, method: method, nextPosition: nextPosition, secret: SecretBytes(copying: secret.span))
      accounts.append(try #require(account))
    }
    try addUser(user, accounts, replaces: replaces, realClock: testTime)
  }

  /// Issues an activation code; gives its text.
  func issue(
    _ user: BoundedText<32> = ann, otp: CodeMethod? = hotpMethod, seal: CodeMethod? = counterSealMethod,
    replaces: Bool = false, realClock: UInt64? = testTime, seed: UInt64 = 1
  ) throws -> String {
    var random = TestRandom(state: seed)
    let code = try issueActivation(
      of: user, ByPurpose(otp: otp, seal: seal), replaces: replaces, realClock: realClock, random: &random)
    return code.text
  }

  func issueUnlocking(_ user: BoundedText<32> = ann, realClock: UInt64? = testTime, seed: UInt64 = 2) throws -> String {
    var random = TestRandom(state: seed)
    return try issueUnlock(of: user, realClock: realClock, random: &random).text
  }
}

extension TestVisitor {
  /// Goes through a whole activation or unlocking at one connection of a device; says whether both ends took it.
  mutating func use(
    _ text: String, for purpose: OneUseCode.Purpose = .activation, at connection: TestConnection, seed: UInt64 = 3
  ) throws -> Bool {
    try use(text, for: purpose, seed: seed, challenge: connection.challenge()) { connection.respond($0) }
  }
}
