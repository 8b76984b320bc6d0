import HoldfastCore
import HoldfastDevice
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport

/// A remembered round on a device whose ledger is full of what it keeps. The ledger is a database that does not wait for the disk.
final class LedgerWork {
  private enum Environment: DeviceEnvironment {
    typealias Crypto = OpenSSLCryptography
    typealias Key = P256PrivateKey
    typealias Store = SessionStore<TestClock>
    typealias Rules = SessionPolicy
    typealias Random = TestRandom
    typealias Time = TestClock
  }

  private let place = try! TemporaryFolder()
  private let ledger: Ledger
  private let memory: TokenMemory
  private let prover: TestProver
  private var session: DeviceSession<Environment>
  private var lock = OpeningLock()

  /// `kind` is `entries`, `nonces`, `users` or `tokens`.
  init(_ inputs: Inputs, _ kind: String, count: Int) throws {
    let claims = Inputs.claims
    let path = place.file("ledger")
    try Ledger.create(path: path, deviceID: claims.audience, realClock: testTime)
    let most = UInt64(count) * 2 + 1000
    ledger = try Ledger(path: path, limits: LedgerLimits(keptCount: most, userCount: most))
    try ledger.trust(.signing(inputs.issuer), realClock: testTime)
    try ledger.read { (tables) throws(DatabaseError) in _ = try tables.database.run("PRAGMA synchronous = OFF") }
    memory = TokenMemory(capacity: count + 1)
    let policy = SessionPolicy(ledger: ledger)
    policy.current = DevicePolicy(commands: [
      "unlock": CommandRule(factors: [.integrity, .device], allowsCompatibility: true)
    ])
    let key = try Inputs.deviceKey()
    var cryptography = OpenSSLCryptography()
    let id = try keyID(of: key.publicPoint, using: &cryptography)
    session = DeviceSession(
      deviceID: claims.audience, keyID: id, cryptography: cryptography, key: key,
      store: SessionStore(ledger: ledger, memory: memory, clock: TestClock(), policy: policy), policy: policy,
      random: TestRandom(), clock: TestClock(),
      challenges: ChallengeSource(seed: secret([UInt8](repeating: 9, count: 32)), bootCount: 1, connection: 1))
    prover = TestProver(claims, token: inputs.token)
    try fill(kind, count)
    try round([])
  }

  func perform() throws -> Bool {
    try round(.asReference)
    return true
  }

  private func round(_ flaws: Flaws) throws {
    try session.makeChallenge()
    try respond(try prover.answer(session.challenge.array, command: "unlock", flaws: flaws).message)
  }

  private func respond(_ message: [UInt8]) throws {
    let status = session.respond(to: message.span, waitedMilliseconds: 0, actuator: &lock).status
    guard status == .accepted else { throw RoundDenied(status: status) }
  }

  /// Sixteen bytes, big-endian. The first bit is zero, as in a nonce that an app chose.
  private func bytes(of number: Int) -> [UInt8] {
    (0..<16).map { $0 < 8 ? 0 : UInt8(truncatingIfNeeded: number >> (8 * (15 - $0))) }
  }

  private func fill(_ kind: String, _ count: Int) throws {
    switch kind {
    case "entries":
      for number in 0..<count { try round(number == 0 ? [] : .asReference) }
    case "nonces":
      // A device keeps 1024 of one token.
      let (issuer, recipient) = (try Inputs.issuerKey(), try Inputs.deviceKey().publicPoint)
      var filler = prover
      for number in 0..<count {
        let isFirst = number % 1000 == 0
        if isFirst {
          var claims = Inputs.claims
          claims.tokenID = fixed(bytes(of: number + 1))
          filler = TestProver(claims, token: try issuer.token(claims, to: recipient))
        }
        try session.makeChallenge()
        let flaws: Flaws = isFirst ? [] : .asReference
        try respond(try filler.compatibilityAnswer(nonce: bytes(of: number), command: "unlock", flaws: flaws))
      }
    case "users":
      for number in 0..<count {
        let secret = SecretBytes(copying: [UInt8](repeating: 7, count: 20).span)
        let method = CodeMethod.hotp(.sha1, .six)
        guard let account = NewAccount(purpose: .otp, method: method, nextPosition: 0, secret: secret),
          let name = BoundedText<32>("user-\(number)")
        else { throw UnknownWork() }
        try ledger.addUser(name, [account], replaces: false, realClock: testTime)
      }
    case "tokens":
      let token = AuthenticatedToken()
      for number in 0..<count {
        var reference = TokenReference()
        for index in 0..<8 { reference[index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
        memory.remember(token, as: reference)
      }
    default: throw UnknownWork()
    }
  }
}
