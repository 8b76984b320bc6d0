import HoldfastCore

/// The device of a vector: its key is given, it allows everything, and has recorded nothing that forbids anything.
///
/// The same on Linux and on a microcontroller, but for the cryptography.
public struct GivenDevice<Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable>: ~Copyable {
  private var session: DeviceSession<Crypto, Key, GivenStore, PermissivePolicy, NoRandom, NoClock>

  /// `keyID` is the id of `key`'s public point.
  public init(
    deviceID: DeviceID, keyID: KeyID, key: consuming Key, issuers: TrustedIssuers, cryptography: consuming Crypto
  ) {
    session = DeviceSession(
      deviceID: deviceID, keyID: keyID, cryptography: cryptography, key: key, store: GivenStore(issuers: issuers),
      policy: PermissivePolicy(), random: NoRandom(), clock: NoClock(),
      challenges: ChallengeSource(seed: Secret(), bootCount: 0, connection: 0))
  }

  /// Remembers a token, in the place of an earlier one.
  public mutating func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {
    session.store.reference = reference
    session.store.token.set(token)
  }

  /// Answers M2 to the M1 that is given, and leaves M3 in ``verdict``; an accepted command gives `result`.
  ///
  /// Throws for an M1 of more than 64 bytes and a result of more than 1024.
  public mutating func answer(
    _ message: Span<UInt8>, to challenge: Span<UInt8>, result: Span<UInt8>
  ) throws(EncodingFault) -> Status {
    try session.beginRound(challenge: challenge)
    var actuator = try GivenResult(result)
    return session.respond(to: message, waitedMilliseconds: 0, actuator: &actuator).status
  }

  /// The last M3.
  public var verdict: Span<UInt8> {
    @_lifetime(borrow self)
    get { session.outgoing.bytes }
  }
}

/// What a device derives in a round whose M1, head and secrets are given.
public struct GivenRound: ~Copyable {
  private let transcript: Transcript
  private let keys: SessionKeys

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

  /// The transcript hash, the proof nonce, and both keys: 112 bytes.
  public func appendValues<Sink: ByteSink & ~Copyable>(to sink: inout Sink) throws(Sink.Failure) {
    try sink.append(transcript.hash.bytes)
    try sink.append(transcript.proofNonce.bytes)
    try keys.proverToDevice.withBytes { (bytes) throws(Sink.Failure) in try sink.append(bytes) }
    try keys.deviceToProver.withBytes { (bytes) throws(Sink.Failure) in try sink.append(bytes) }
  }

  /// Opens the sealed part of M2, and writes the request that was read.
  public func appendRequest<Crypto: Cryptography & ~Copyable>(
    in message: Span<UInt8>, to buffer: inout MessageBuffer, using cryptography: inout Crypto
  ) throws(GivenRoundFault) {
    var plaintext = MessageBuffer()
    do throws(EncodingFault) {
      guard case .session(_, let sealed) = try Answer(message).form else { throw .unexpected }
      try plaintext.append(sealed)
    } catch { throw .encoding }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
        using: &cryptography)
    } catch { throw .cryptography }
    do throws(EncodingFault) { try WrittenAgain.request(plaintext.bytes, into: &buffer) } catch { throw .encoding }
  }

  /// Reads `reply`, the plaintext of M3's sealed part, and writes the M3 that has it.
  public func appendVerdict<Crypto: Cryptography & ~Copyable>(
    _ status: Status, _ reply: Span<UInt8>, to buffer: inout MessageBuffer, using cryptography: inout Crypto
  ) throws(GivenRoundFault) {
    var sealed = ByteBuffer<1152>()
    var authenticated = ByteBuffer<33>()
    do throws(EncodingFault) {
      try Reply(reply).encode(into: &sealed)
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

/// Why a part of a round could not be made.
public enum GivenRoundFault: Error {
  case encoding, cryptography
}

extension ByteBuffer {
  /// Takes claims at the end, as a CWT claims set.
  public mutating func append(claims: borrowing MeasurementClaims) throws(EncodingFault) {
    try claims.appendCBOR(to: &self)
  }
}

/// A store that remembers one token and has recorded nothing.
public struct GivenStore: DeviceStore, ~Copyable {
  let issuers: TrustedIssuers
  var reference = TokenReference()
  var token = VerifiedToken()

  init(issuers: TrustedIssuers) {
    self.issuers = issuers
  }

  public func trustedIssuer(_ keyID: KeyID) -> IssuerKey? { issuers.trustedIssuer(keyID) }
  public func clockFloor() -> UInt64 { 0 }
  public func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool {
    guard reference == self.reference else { return false }
    token.set(self.token)
    return true
  }
  public func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {}
  public func settle(_ round: borrowing Round, _ decision: inout Decision, judge: Judge) {
    judge(round, LedgerSnapshot(clockFloor: 0), &decision)
  }
  public func keepOutcome(_ outcome: Status, of request: RequestIdentity) {}
  public func codeSecret(of userID: UInt64, _ purpose: CodePurpose) -> CodeSecret? { nil }
  public func user(named name: BoundedText<32>) -> UserRecord? { nil }
  public func oneUseCode(at index: Int) -> OneUseCodeRecord? { nil }
  public func activate(_ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?) -> Bool { false }
  public func unlock(_ codeID: UInt64, realClock: UInt64?) -> Bool { false }
  public func countUnproved(_ status: Status) {}
}

/// A policy under which every command needs no more than the device.
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

/// The challenges are given: a device that asks for more has failed.
struct NoRandom: RandomSource {
  func fill(_ output: inout MutableSpan<UInt8>) throws(RandomFailure) { throw RandomFailure() }
}

/// Carries out every command with a result that is given.
struct GivenResult: Actuator, ~Copyable {
  private var given = ByteBuffer<1024>()

  init(_ result: Span<UInt8>) throws(EncodingFault) {
    try given.append(result)
  }

  func perform(_ request: borrowing Request, result: inout ByteBuffer<1024>) throws(ActuatorFailure) {
    do throws(EncodingFault) { try result.append(given.bytes) } catch { throw ActuatorFailure() }
  }
}

/// Trust in one public key, and perhaps in one MAC key.
public struct TrustedIssuers: IssuerTrust {
  /// A key that an issuer shares with the device, and its id.
  public struct Shared: Sendable {
    public let keyID: KeyID
    public let key: FixedBytes<32>

    public init(keyID: KeyID, key: FixedBytes<32>) {
      (self.keyID, self.key) = (keyID, key)
    }
  }

  public let keyID: KeyID
  public let publicKey: P256Point
  public let shared: Shared?

  public init(keyID: KeyID, publicKey: P256Point, shared: Shared? = nil) {
    (self.keyID, self.publicKey, self.shared) = (keyID, publicKey, shared)
  }

  public func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    if keyID == self.keyID { return .signing(publicKey) }
    guard let shared, keyID == shared.keyID, let key = Secret<32>(copying: shared.key.bytes) else { return nil }
    return .mac(key)
  }
}
