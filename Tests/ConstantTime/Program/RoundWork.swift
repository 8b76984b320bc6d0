import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// Whole rounds of a device, which checks a user's one-time password from a counter.
func counterPasswordRound() throws -> Bool { try checks(.otp, hotpMethod) { try password(3, secret: $0) } }

/// Rounds with a one-time password from the time.
func timePasswordRound() throws -> Bool {
  try checks(.otp, totpMethod) { try password(testTime / 30, secret: $0) }
}

/// Rounds with a seal from a counter.
func counterSealRound() throws -> Bool {
  try checks(.seal, counterSealMethod) { try seal(counterSealMethod, 5, "unlock", secret: $0) }
}

/// Rounds with a seal from the time.
func timeSealRound() throws -> Bool {
  try checks(.seal, timeSealMethod) { try seal(timeSealMethod, testTime / 60, "unlock", secret: $0) }
}

/// Returns whether a device accepts a code under the user's secret once, and refuses a code under another one.
///
/// Secret are the user's secret with all codes that the device computes, the shared secret of the token's encryption, what the token
/// says about the app, and with it the proofs and both session keys. What peers sent is public, and so is M3.
private func checks(
  _ purpose: CodePurpose, _ method: CodeMethod, code: ([UInt8]) throws -> UserCode
) throws -> Bool {
  var other = usersSecret
  other[31] ^= 1
  let right = try code(usersSecret)
  let rejection: Status = purpose == .otp ? .otpRejected : .sealRejected
  return try statuses(purpose, method, [right, right]) == [.accepted, rejection]
    && statuses(purpose, method, [try code(other)]) == [rejection]
}

/// Returns the statuses of rounds of one device, the first with the whole token and others with a reference.
private func statuses(_ purpose: CodePurpose, _ method: CodeMethod, _ codes: [UserCode]) throws -> [Status] {
  let claims = {
    var claims = TestClaims(for: DeviceID(filledWith: 0xd1))
    (claims.integrity, claims.device, claims.proofKey) = (Array(1...32), Array(33...64), Array(65...80))
    return claims
  }()
  let issuer = try TestIssuer()
  let key = try P256PrivateKey()
  let prover = TestProver(claims, token: try issuer.token(claims, to: key.publicPoint))
  var session = try session(claims, trusting: issuer.point, key: key, purpose, method)
  var lock = CountingMachine()
  let statuses = try codes.enumerated().map { number, code in
    try session.makeChallenge()
    let answer = try prover.answer(
      session.challenge.array, command: "unlock", flaws: number == 0 ? [] : .asReference,
      otp: purpose == .otp ? code : nil, seal: purpose == .seal ? code : nil)
    let outcome = session.respond(to: answer.message.span, waitedMilliseconds: 0, actuator: &lock)
    reveal(session.outgoing.bytes)
    let verdict = try prover.open(session.outgoing.array, after: answer)
    guard verdict.result != nil, verdict.status == outcome.status else { return Status.malformed }
    return outcome.status
  }
  guard session.cryptography.markedCount == 3 else { return [] }
  return statuses
}

private enum MarkedEnvironment: DeviceEnvironment {
  typealias Crypto = MarkingCryptography
  typealias Key = MarkingKey
  typealias Store = MemoryStore
  typealias Rules = TestPolicy
  typealias Random = TestRandom
  typealias Time = TestClock
}

/// Makes a device whose command `unlock` needs the code of one user.
private func session(
  _ claims: TestClaims, trusting issuer: P256Point, key: consuming P256PrivateKey, _ purpose: CodePurpose,
  _ method: CodeMethod
) throws -> DeviceSession<MarkedEnvironment> {
  let policy = TestPolicy()
  policy.rules["unlock"] = CommandRule(factors: [.integrity, .device, purpose == .otp ? .otp : .seal])
  let store = try MemoryStore(trusting: issuer)
  store.floor = testTime
  store.secrets = [purpose: marked(usersSecret)]
  var user = UserRecord(id: 7, lastAccepted: testTime)
  user.accounts[purpose] = CodeAccount(method: method)
  store.users[ann] = user
  var libcrypto = OpenSSLCryptography()
  return DeviceSession(
    deviceID: claims.audience, keyID: try keyID(of: key.publicPoint, using: &libcrypto),
    cryptography: MarkingCryptography(secrets: [claims.integrity, claims.device, claims.proofKey]),
    key: MarkingKey(key), store: store, policy: policy, random: TestRandom(), clock: TestClock(),
    challenges: ChallengeSource(seed: secret([UInt8](repeating: 9, count: 32)), bootCount: 1, connection: 1))
}
