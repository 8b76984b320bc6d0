import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL
import TestSupport

/// A work on a device whose ledger is full of what it keeps.
final class LedgerWork {
  /// The kind of record of which the ledger has many, and with it the work.
  enum Kind: String {
    /// Entries of the audit log, and a remembered round.
    case entries
    /// Remembered tokens, which are in memory, and a remembered round.
    case tokens
    /// Tokens whose request numbers are kept, and a remembered round with a number.
    case requests
    /// Nonces of compatibility rounds, and such a round.
    case nonces
    /// Users, and a remembered round with a one-time password of one of them.
    case users
    /// Users, and adding one more.
    case adding
  }

  private enum Environment: DeviceEnvironment {
    typealias Crypto = OpenSSLCryptography
    typealias Key = P256PrivateKey
    typealias Store = SessionStore<TestClock>
    typealias Rules = SessionPolicy
    typealias Random = TestRandom
    typealias Time = TestClock
  }

  private let kind: Kind
  private let count: Int
  private let ledger: Ledger
  private var prover: TestProver
  private var session: DeviceSession<Environment>
  private var lock = OpeningLock()
  /// The number of repetitions so far.
  private var number = 0

  init(_ inputs: Inputs, _ kind: Kind, count: Int) throws {
    (self.kind, self.count) = (kind, count)
    let claims = Inputs.claims
    let path = inputs.folder + "/ledger"
    try Ledger.create(path: path, deviceID: claims.audience, realClock: testTime)
    // Room for the records, and for those that the repetitions add.
    let most = UInt64(count) * 2 + 1_000_000
    ledger = try Ledger(path: path, limits: LedgerLimits(keptCount: most, requestCount: most, userCount: most))
    try ledger.trust(.signing(inputs.issuer), realClock: testTime)
    let memory = TokenMemory(capacity: count + 1)
    let policy = SessionPolicy(ledger: ledger)
    let factors: Factors = kind == .users ? [.integrity, .device, .otp] : [.integrity, .device]
    policy.current = DevicePolicy(commands: ["unlock": CommandRule(factors: factors, allowsCompatibility: true)])
    let key = try Inputs.deviceKey()
    var cryptography = OpenSSLCryptography()
    let id = try keyID(of: key.publicPoint, using: &cryptography)
    session = DeviceSession(
      deviceID: claims.audience, keyID: id, cryptography: cryptography, key: key,
      store: SessionStore(ledger: ledger, memory: memory, clock: TestClock(), policy: policy), policy: policy,
      random: TestRandom(), clock: TestClock(),
      challenges: ChallengeSource(seed: secret([UInt8](repeating: 9, count: 32)), bootCount: 1, connection: 1))
    prover = TestProver(claims, token: inputs.token)
    let filling = try LedgerFilling(ledger, memory, issuer: inputs.issuer)
    if kind == .users { try filling.fill(kind, count) }
    try round([])
    number += 1
    if kind != .users { try filling.fill(kind, count) }
  }

  func perform() throws -> Bool {
    defer { number += 1 }
    switch kind {
    case .entries, .tokens, .requests, .users: try round(.asReference)
    case .nonces: try compatibilityRound()
    case .adding: try LedgerFilling.add(user: count + number, to: ledger)
    }
    return true
  }

  private func round(_ flaws: Flaws) throws {
    try session.makeChallenge()
    let answer = try prover.answer(
      session.challenge.array, command: "unlock", flaws: flaws, otp: kind == .users ? try password() : nil,
      number: kind == .requests ? UInt64(number + 1) : nil)
    try respond(answer.message)
  }

  /// The next password of another user each time.
  private func password() throws -> UserCode {
    var cryptography = OpenSSLCryptography()
    let code = try HOTP.code(
      counter: UInt64(number / count), key: Inputs.codeKey.span, hash: .sha1, length: .six, using: &cryptography)
    // A prime, so that all users have their turn before the first one has it again.
    return UserCode(user: LedgerFilling.user(number * 7919 % count), code: code)
  }

  /// A round with a nonce that is new. A device keeps 1024 of one token; the next token is made within the time.
  private func compatibilityRound() throws {
    let isFirst = number % 1000 == 0
    if isFirst {
      var claims = Inputs.claims
      claims.tokenID = TokenID(LedgerFilling.bytes(of: -1 - number).span)!
      prover = TestProver(
        claims, token: try Inputs.issuerKey().token(claims, to: Inputs.deviceKey().publicPoint))
    }
    try session.makeChallenge()
    let nonce = LedgerFilling.bytes(of: number &* 0x1e37_79b9_7f4a_7c15)
    try respond(
      try prover.compatibilityAnswer(nonce: nonce, command: "unlock", flaws: isFirst ? [] : .asReference))
  }

  private func respond(_ message: [UInt8]) throws {
    let status = session.respond(to: message.span, waitedMilliseconds: 0, actuator: &lock).status
    guard status == .accepted else { throw RoundDenied(status: status) }
  }
}
