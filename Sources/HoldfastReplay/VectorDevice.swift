import HoldfastCore

/// A device for replaying a test vector: its key is given, and it has an empty ledger and a policy that allows every command.
///
/// It is the same on Linux and on a microcontroller, except for the cryptography.
public struct VectorDevice<Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable>: ~Copyable {
  private enum Environment: DeviceEnvironment {
    typealias Store = VectorStore
    typealias Rules = PermissivePolicy
    typealias Random = VectorRandom
    typealias Time = NoClock
  }

  private var session: DeviceSession<Environment>

  /// Creates a device; `keyID` must be the id of the public point of `key`.
  public init(
    deviceID: DeviceID, keyID: KeyID, key: consuming Key, issuers: TrustedIssuers, cryptography: consuming Crypto
  ) {
    session = DeviceSession(
      deviceID: deviceID, keyID: keyID, cryptography: cryptography, key: key, store: VectorStore(issuers: issuers),
      policy: PermissivePolicy(), random: VectorRandom(), clock: NoClock(),
      challenges: ChallengeSource(seed: Secret(), bootCount: 0, connection: 0))
  }

  /// Remembers a token, which replaces an earlier one.
  public mutating func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
    session.store.reference = reference
    session.store.token.set(token)
  }

  /// Answers M2 to the given M1, and leaves M3 in ``verdict``. An accepted command returns `result`.
  ///
  /// - Throws: `EncodingFault` for an M1 of more than 64 bytes, and a result of more than 1024.
  public mutating func answer(
    _ message: Span<UInt8>, to challenge: Span<UInt8>, result: Span<UInt8>
  ) throws(EncodingFault) -> Status {
    try session.beginRound(challenge: challenge)
    var actuator = try VectorActuator(result)
    return session.respond(to: message, waitedMilliseconds: 0, actuator: &actuator).status
  }

  /// Has an owner's code, and draws these bytes wherever it needs random ones.
  ///
  /// - Parameters:
  ///   - code: the record of the code.
  ///   - time: the device's time, in Unix seconds.
  ///   - random: the private key of an activation, 32 bytes.
  package mutating func keep(_ code: consuming OneUseCodeRecord, time: UInt64, random: FixedBytes<32>) {
    session.store.code = .some(code)
    session.store.time = time
    session.random.bytes = random
  }

  /// Answers a user's confirmation, in the round that ``answer(_:to:result:)`` has begun.
  package mutating func confirm(_ message: Span<UInt8>) throws(EncodingFault) -> Status {
    var actuator = try VectorActuator(Span())
    return session.respond(to: message, waitedMilliseconds: 0, actuator: &actuator).status
  }

  /// The last M3, the verdict message, or the answer to a user.
  public var verdict: Span<UInt8> {
    @_lifetime(borrow self)
    get { session.outgoing.bytes }
  }
}

/// The values that a device derives in a round with a given M1, head and secrets.
public struct VectorRound: ~Copyable {
  private let transcript: Transcript
  private let keys: SessionKeys

  /// Derives the transcript and the session keys.
  ///
  /// - Parameters:
  ///   - challenge: M1.
  ///   - head: the head of M2.
  ///   - proofKey: the measurement proof key (MPK), 16 bytes.
  ///   - device: the device measurement (DM) of the prover's host, 32 bytes.
  ///   - cryptography: an implementation of the primitives.
  public init<Crypto: Cryptography & ~Copyable>(
    challenge: Span<UInt8>, head: Span<UInt8>, proofKey: borrowing MeasurementProofKey, device: borrowing Secret<32>,
    using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    let transcript = try Transcript(challenge: challenge, head: head, using: &cryptography)
    self.init(
      transcript,
      try SessionKeys(proofKey: proofKey, device: device, transcript: transcript, using: &cryptography))
  }

  private init(_ transcript: Transcript, _ keys: consuming SessionKeys) {
    self.transcript = transcript
    self.keys = keys
  }

  /// Appends the transcript hash, the proof nonce, and both keys: 112 bytes.
  public func appendValues<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.append(transcript.hash.bytes)
    try sink.append(transcript.proofNonce.bytes)
    try keys.proverToDevice.withBytes { (bytes) throws(Sink.Failure) in try sink.append(bytes) }
    try keys.deviceToProver.withBytes { (bytes) throws(Sink.Failure) in try sink.append(bytes) }
  }

  /// Opens the sealed part of M2, and appends the request that it contains, encoded again.
  public func appendRequest<Crypto: Cryptography & ~Copyable>(
    in message: Span<UInt8>, to buffer: inout MessageBuffer, using cryptography: inout Crypto
  ) throws(GivenRoundFault) {
    var plaintext = MessageBuffer()
    do throws(EncodingFault) {
      guard case .session(_, let sealed) = try ProofMessage(message).form else { throw .unexpected }
      try plaintext.append(sealed)
    } catch { throw .encoding }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
        using: &cryptography)
    } catch { throw .cryptography }
    do throws(EncodingFault) { try RoundTrip.request(plaintext.bytes, into: &buffer) } catch { throw .encoding }
  }

  /// Decodes `reply`, the plaintext of M3's sealed part, and appends an M3 that contains it.
  public func appendVerdict<Crypto: Cryptography & ~Copyable>(
    _ status: Status, _ reply: Span<UInt8>, to buffer: inout MessageBuffer, using cryptography: inout Crypto
  ) throws(GivenRoundFault) {
    var sealed = VerdictBuffer()
    var authenticated = VerdictContext()
    do throws(EncodingFault) {
      try VerdictBody(reply).encode(into: &sealed)
      try authenticated.append(transcript.hash.bytes)
      try authenticated.append(status.rawValue)
    } catch { throw .encoding }
    do throws(CryptographyFailure) {
      try sealed.seal(
        key: keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: authenticated.bytes,
        using: &cryptography)
    } catch { throw .cryptography }
    do throws(EncodingFault) { try VerdictMessage.encode(status, sealed: sealed.bytes, into: &buffer) } catch {
      throw .encoding
    }
  }
}

/// A reason why a part of a round could not be made.
public enum GivenRoundFault: Error {
  /// A message could not be decoded or encoded, or the cryptography failed.
  case encoding, cryptography
}

extension ByteBuffer {
  /// Appends claims as a CWT claims set.
  public mutating func append(claims: borrowing MeasurementClaims) throws(EncodingFault) {
    try claims.appendCBOR(to: &self)
  }
}

/// A store that remembers one token and at most one code of its owner, and has an empty ledger.
package struct VectorStore: DeviceStore, ~Copyable {
  let issuers: TrustedIssuers
  var reference = TokenReference()
  var token = AuthenticatedToken()
  var code: OneUseCodeRecord?
  var time: UInt64 = 0

  init(issuers: TrustedIssuers) {
    self.issuers = issuers
  }

  /// Returns the key with that id; nil for any other id.
  package func trustedIssuer(_ keyID: KeyID) -> IssuerKey? { issuers.trustedIssuer(keyID) }
  /// Returns the given time, or 0: the device has no clock.
  package func clockFloor() -> UInt64 { time }
  /// Copies the remembered token to `token`; returns false for another reference.
  package func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    guard reference == self.reference else { return false }
    token.set(self.token)
    return true
  }
  /// Does nothing: the token is given by ``VectorDevice/remember(_:as:)``.
  package func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {}
  /// Lets `decide` make the decision from an empty ledger, and records nothing.
  package func record(_ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide) {
    decide(round, LedgerSnapshot(clockFloor: time), &decision)
  }
  /// Does nothing: no outcome is kept.
  package func keepOutcome(_ outcome: Status, of request: RequestIdentity) {}
  /// Returns nil: there are no users.
  package func codeSecret(of userID: UInt64, _ purpose: CodePurpose) -> CodeSecret? { nil }
  /// Returns nil: there are no users.
  package func user(named name: BoundedText<32>) -> UserRecord? { nil }
  /// Returns the code; nil at any index but 0, and if there is none.
  package func oneUseCode(at index: Int) -> OneUseCodeRecord? { index == 0 ? copyOfCode() : nil }
  /// Lets `decide` judge the code, and records nothing.
  package func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser
  ) -> Bool { isGood(for: nil, decide) }
  /// Lets `decide` judge the code of a user who is locked out, and records nothing.
  package func unlock(_ codeID: UInt64, realClock: UInt64?, decide: DecideUser) -> Bool {
    isGood(for: UserRecord(id: 1, lastAccepted: time), decide)
  }
  /// Does nothing: no totals are kept.
  package func countUnauthenticated(_ status: Status) {}

  private func isGood(for user: UserRecord?, _ decide: DecideUser) -> Bool {
    guard let code = copyOfCode() else { return false }
    return decide(CodeFacts(code: code, user: user, userCount: 0, userCapacity: 1, clockFloor: time)) != nil
  }

  private func copyOfCode() -> OneUseCodeRecord? {
    switch code {
    case .some(let code):
      OneUseCodeRecord(
        id: code.id, purpose: code.purpose, key: code.key.copy(), user: code.user, expires: code.expires,
        methods: code.methods)
    case .none: nil
    }
  }
}

/// A policy under which every command requires only the factor `device`.
struct PermissivePolicy: Policy {
  func rule(for command: BoundedText<32>) -> CommandRule? { CommandRule(factors: .device) }
  var limits: TokenLimits { TokenLimits() }
  var commonFactors: Factors { .device }
  var codeLimits: CodeLimits { CodeLimits() }
  var acceptsUnsigned: Bool { false }
  var acceptsMAC: Bool { false }
  var maximumIssueAdvanceSeconds: UInt64 { .max }
}

struct NoClock: Clock {
  func unixSeconds() -> UInt64? { nil }
  func monotonicMilliseconds() -> UInt64 { 0 }
}

/// A random source that always returns the same bytes. Without any it fails: the challenges are given, so a device that needs
/// randomness is wrong.
struct VectorRandom: RandomSource {
  var bytes: FixedBytes<32>?

  func fill(_ output: inout MutableSpan<UInt8>) throws(RandomFailure) {
    guard let bytes else { throw RandomFailure() }
    for index in output.indices { output[index] = bytes[index % 32] }
  }
}

/// An actuator that carries out every command with a given result.
struct VectorActuator: Actuator, ~Copyable {
  private var given = ResultBuffer()

  init(_ result: Span<UInt8>) throws(EncodingFault) {
    try given.append(result)
  }

  func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(given.bytes) } catch { throw ActuatorFailure() }
  }
}

/// Trust in one public key, and optionally in one MAC key.
public struct TrustedIssuers: IssuerTrust {
  /// A key that an issuer shares with the device, and its id.
  public struct Shared: Sendable {
    /// The id of the key, 8 bytes.
    public let keyID: KeyID
    /// The MAC key, 32 bytes.
    package let key: FixedBytes<32>

    /// Creates the pair of id and key.
    public init(keyID: KeyID, key: FixedBytes<32>) {
      (self.keyID, self.key) = (keyID, key)
    }
  }

  /// The id of the public key, 8 bytes.
  public let keyID: KeyID
  /// The issuer's public key.
  package let publicKey: P256Point
  /// The MAC key; nil for none.
  package let shared: Shared?

  /// Trusts `publicKey` under `keyID`, and the MAC key if there is one.
  public init(keyID: KeyID, publicKey: P256Point, shared: Shared? = nil) {
    (self.keyID, self.publicKey, self.shared) = (keyID, publicKey, shared)
  }

  /// Returns the trusted key with that id; nil for any other id.
  public func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    if keyID == self.keyID { return .signing(publicKey) }
    guard let shared, keyID == shared.keyID, let key = Secret<32>(copying: shared.key.bytes) else { return nil }
    return .mac(key)
  }
}
