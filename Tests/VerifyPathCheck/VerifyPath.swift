/// The whole verify path of a device, instantiated over operations that are not there. `run` links it for a
/// microcontroller without an allocator: whatever reached for the heap would be an undefined symbol.

import HoldfastCore

@_silgen_name("stub_update") func stubUpdate(_ byte: UInt8)
@_silgen_name("stub_result") func stubResult() -> UInt8
@_silgen_name("stub_receive") func stubReceive() -> UInt8

struct StubDigest: StreamingDigest {
  mutating func append(_ bytes: Span<UInt8>) {
    for index in bytes.indices { stubUpdate(bytes[index]) }
  }

  mutating func finish(into output: inout MutableSpan<UInt8>) throws(CryptographyFailure) {
    for index in output.indices { output[index] = stubResult() }
  }
}

struct StubCryptography: Cryptography {
  mutating func sha1() -> StubDigest { StubDigest() }
  mutating func sha256() -> StubDigest { StubDigest() }
  mutating func sha512() -> StubDigest { StubDigest() }
  mutating func hmacSHA1(key: Span<UInt8>) -> StubDigest { StubDigest() }
  mutating func hmacSHA256(key: Span<UInt8>) -> StubDigest { StubDigest() }
  mutating func hmacSHA512(key: Span<UInt8>) -> StubDigest { StubDigest() }

  mutating func hkdfSHA256(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) {
    for index in output.indices { output[index] = stubResult() }
  }

  mutating func aes256GCMSeal(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: inout AuthenticationTag
  ) {
    for index in message.indices { message[index] ^= stubResult() }
  }

  mutating func aes256GCMOpen(
    key: borrowing Secret<32>, nonce: Span<UInt8>, authenticating data: Span<UInt8>,
    message: inout MutableSpan<UInt8>, tag: AuthenticationTag
  ) throws(CryptographyFailure) {
    for index in message.indices { message[index] ^= stubResult() }
    if stubResult() == 0 { throw CryptographyFailure() }
  }

  mutating func aes256KeyUnwrap(
    wrappingKey: borrowing Secret<32>, wrapped: Span<UInt8>, into key: inout Secret<32>
  ) throws(CryptographyFailure) {
    if stubResult() == 0 { throw CryptographyFailure() }
  }

  mutating func p256Verify(key: P256Point, digest: Digest, signature: FixedBytes<64>) throws(CryptographyFailure) {
    if stubResult() == 0 { throw CryptographyFailure() }
  }
}

extension StubCryptography {
  mutating func p256PublicPoint(scalar: borrowing Secret<32>) throws(CryptographyFailure) -> P256Point {
    if stubResult() == 0 { throw CryptographyFailure() }
    return P256Point()
  }

  mutating func p256Agree(
    scalar: borrowing Secret<32>, peer: P256Point, into shared: inout Secret<32>
  ) throws(CryptographyFailure) {
    if stubResult() == 0 { throw CryptographyFailure() }
  }
}

struct StubKey: AgreementKey {
  var publicPoint: P256Point { P256Point() }

  mutating func agree(with peer: P256Point, into shared: inout Secret<32>) throws(CryptographyFailure) {
    if stubResult() == 0 { throw CryptographyFailure() }
  }
}

/// One slot, as a small device would have several.
private struct StubStore: ~Copyable, DeviceStore {
  var reference = TokenReference()
  var token = AuthenticatedToken()

  mutating func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    switch stubResult() {
    case 0: nil
    case 1: .mac(Secret())
    default: .signing(P256Point())
    }
  }
  mutating func clockFloor() -> UInt64 { UInt64(stubResult()) }
  mutating func recall(_ reference: TokenReference, into other: inout AuthenticatedToken) -> Bool {
    guard self.reference == reference else { return false }
    other.set(token)
    return true
  }
  mutating func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
    self.reference = reference
    self.token.set(token)
  }
  mutating func keepOutcome(_ outcome: Status, of request: RequestIdentity) {}
  mutating func record(_ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide)
    throws(DeviceFault)
  {
    var user = UserRecord(id: 1, lastAccepted: UInt64(stubResult()))
    user.accounts[.otp] = CodeAccount(method: .hotp(.sha1, .six))
    user.accounts[.seal] = CodeAccount(method: .ocra(.usualSeal))
    var snapshot = LedgerSnapshot(clockFloor: UInt64(stubResult()), user: user)
    let number = UInt64(stubResult())
    snapshot.request = RequestRecord(
      highest: number, window: number, digest: TypedBytes(), expires: UInt64(stubResult()), outcome: nil)
    decide(round, snapshot, &decision)
  }
  mutating func codeSecret(of userID: UInt64, _ purpose: CodePurpose) -> CodeSecret? {
    stubResult() == 0 ? nil : CodeSecret()
  }
  mutating func user(named name: BoundedText<32>) -> UserRecord? {
    stubResult() == 0 ? nil : UserRecord(id: 1, lastAccepted: UInt64(stubResult()))
  }
  mutating func oneUseCode(at index: Int) -> OneUseCodeRecord? {
    guard index < Int(stubResult()) else { return nil }
    return OneUseCodeRecord(
      id: 1, purpose: .activation, key: Secret(), user: BoundedText("alice"), expires: UInt64(stubResult()))
  }
  mutating func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser
  ) -> Bool {
    decide(facts) != nil
  }
  mutating func unlock(_ codeID: UInt64, realClock: UInt64?, decide: DecideUser) -> Bool { decide(facts) != nil }
  private var facts: CodeFacts {
    CodeFacts(
      code: OneUseCodeRecord(
        id: 1, purpose: .activation, key: Secret(), user: BoundedText("alice"), expires: UInt64(stubResult())),
      user: stubResult() == 0 ? nil : UserRecord(id: 1, lastAccepted: 0), userCount: Int(stubResult()),
      userCapacity: 16, clockFloor: UInt64(stubResult()))
  }
  mutating func countUnauthenticated(_ status: Status) { stubUpdate(status.rawValue) }
}

private struct StubPolicy: Policy {
  func rule(for command: BoundedText<32>) -> CommandRule? {
    command == BoundedText("unlock") ? CommandRule(factors: .all) : nil
  }
  var limits: TokenLimits { TokenLimits() }
  var commonFactors: Factors { .device }
  var codeLimits: CodeLimits { CodeLimits() }
  var acceptsUnsigned: Bool { stubResult() == 1 }
  var acceptsMAC: Bool { stubResult() == 1 }
  var maximumIssueAdvanceSeconds: UInt64 { 86_400 * 400 }
}

struct StubHost: RandomSource, Clock, Actuator {
  mutating func fill(_ bytes: inout MutableSpan<UInt8>) {
    for index in bytes.indices { bytes[index] = stubResult() }
  }
  func unixSeconds() -> UInt64? { nil }
  func monotonicMilliseconds() -> UInt64 { UInt64(stubResult()) }
  mutating func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(request.command.bytes) } catch { throw ActuatorFailure() }
  }
}

private enum Stubs: DeviceEnvironment {
  typealias Crypto = StubCryptography
  typealias Key = StubKey
  typealias Store = StubStore
  typealias Rules = StubPolicy
  typealias Random = StubHost
  typealias Time = StubHost
}

/// Serves one connection for ever.
@_cdecl("verify_path_check")
public func verifyPathCheck() {
  var session = DeviceSession<Stubs>(
    deviceID: DeviceID(), keyID: KeyID(), cryptography: StubCryptography(), key: StubKey(), store: StubStore(),
    policy: StubPolicy(), random: StubHost(), clock: StubHost(),
    challenges: ChallengeSource(seed: Secret(), bootCount: 1, connection: 1))
  var actuator = StubHost()
  while stubResult() != 0 {
    do throws(DeviceFault) { try session.makeChallenge() } catch { return }
    var message = MessageBuffer()
    while stubResult() != 0 {
      do throws(EncodingFault) { try message.append(stubReceive()) } catch { session.refuse(.malformed) }
    }
    let response = session.respond(to: message.bytes, waitedMilliseconds: 0, actuator: &actuator)
    stubUpdate(response.status.rawValue)
  }
}

/// Makes codes of every kind, from inputs that nothing is known about.
@_cdecl("code_path_check")
public func codePathCheck() {
  var cryptography = StubCryptography()
  var key = Secret<64>()
  key.withMutableBytes { for index in $0.indices { $0[index] = stubResult() } }
  var text = ByteBuffer<64>()
  while stubResult() != 0 {
    do throws(EncodingFault) { try text.append(stubReceive()) } catch { return }
  }
  guard let hash = OATHHash(rawValue: stubResult()), let length = CodeLength(Int(stubResult())),
    let suite = OCRASuite(text.bytes), let question = OCRAQuestion(text.bytes, for: suite)
  else { return }
  key.withBytes { key in
    let step = TOTP.timeStep(at: UInt64(stubResult()), periodSeconds: 30)
    do throws(CryptographyFailure) {
      report(try HOTP.code(counter: step, key: key, hash: hash, length: length, using: &cryptography).bytes)
    } catch { return }
    let session = InlineArray<8, UInt8>(repeating: stubResult())
    let input = OCRAInput(counter: step, question: question, pin: key, session: session.span, timeStep: step)
    do throws(OCRAFault) {
      report(try OCRA.code(suite: suite, key: key, input: input, using: &cryptography).bytes)
      let whole = try OCRA.untruncated(suite: suite, key: key, input: input, using: &cryptography)
      report(whole.bytes)
    } catch { return }
  }
}

private func report(_ bytes: Span<UInt8>) {
  for index in bytes.indices { stubUpdate(bytes[index]) }
}
