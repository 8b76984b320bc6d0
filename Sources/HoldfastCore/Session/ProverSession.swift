/// The prover's side of one connection, which answers challenges and reads verdicts. It does no I/O.
///
/// Pass every message from the device to ``receive(_:)``, and carry out the step that it returns. The session sends
/// nothing to a device other than the one it expects. If the device does not remember the token, it sends the token
/// whole, once a connection. If the integrity proof was wrong and not every command needs one, it tries again without
/// it.
public struct ProverSession<Crypto: Cryptography & ~Copyable, Random: RandomSource & ~Copyable>: ~Copyable {
  /// The secrets that the prover proves, and the device to which it proves them.
  public struct Identity: ~Copyable {
    let deviceID: DeviceID
    let keyID: KeyID
    let proofKey: Secret<16>
    let integrity: Secret<32>
    let device: Secret<32>

    /// Creates an identity from its parts.
    ///
    /// - Parameters:
    ///   - deviceID: the id of the device, from its descriptor.
    ///   - keyID: the id of the device's key, from the same descriptor.
    ///   - proofKey: the app's measurement proof key, 16 bytes.
    ///   - integrity: the integrity measurement (IM) of the running process, 32 bytes.
    ///   - device: the device measurement (DM) of the prover's host, taken by the running process, 32 bytes.
    public init(
      deviceID: DeviceID, keyID: KeyID, proofKey: consuming Secret<16>, integrity: consuming Secret<32>,
      device: consuming Secret<32>
    ) {
      self.deviceID = deviceID
      self.keyID = keyID
      self.proofKey = proofKey
      self.integrity = integrity
      self.device = device
    }
  }

  let identity: Identity
  private(set) var request: Request
  let token: MessageBuffer
  let tokenEncoding: TokenEncoding
  var cryptography: Crypto
  var random: Random

  var sendsReference: Bool
  var sendsIntegrity = true
  var required: Factors = []
  /// The transcript and keys of the round that waits for its verdict.
  var pending: PendingRound?
  /// The verdict to report unless another round brings a better one.
  var standing: ProverOutcome?

  /// The reply under the device's seal in the last round; empty if there was none.
  public package(set) var reply = VerdictBody()
  /// M2, ready to be sent.
  public package(set) var outgoing = MessageBuffer()

  /// Creates a session for one request.
  ///
  /// - Parameters:
  ///   - identity: the device that is expected, the proof key and the measurements.
  ///   - request: the command, its parameters and codes.
  ///   - token: the measurement token, at most 3072 bytes.
  ///   - encoding: the format of the token.
  ///   - isRemembered: whether this device accepted the token before, so that a reference may be enough.
  ///   - cryptography: an implementation of the primitives.
  ///   - random: the source of the ephemeral key.
  /// - Throws: `tooLong` for a longer token, or if `encoding` is a reference.
  public init(
    identity: consuming Identity, request: consuming Request, token: Span<UInt8>, encoding: TokenEncoding,
    isRemembered: Bool,
    cryptography: consuming Crypto, random: consuming Random
  ) throws(EncodingFault) {
    guard token.count <= TokenOpener.maximumTokenByteCount, encoding != .reference else { throw .tooLong }
    var buffer = MessageBuffer()
    try buffer.append(token)
    self.token = buffer
    self.identity = identity
    self.request = request
    tokenEncoding = encoding
    sendsReference = isRemembered
    self.cryptography = cryptography
    self.random = random
  }

  /// The number of the request. Each request to the device must have a larger number than those before it, and keeps it
  /// when it is sent once more. Set it only if the last verdict ended a request.
  public var requestNumber: UInt64? {
    get { request.number }
    set { request.number = newValue }
  }

  /// Takes a message from the device and returns the next step.
  public mutating func receive(_ message: Span<UInt8>) throws(ProverFault) -> ProverStep {
    outgoing.removeAll()
    if let round = pending.take() {
      return try finish(message, round)
    }
    switch try DeviceGreeting(message) {
    case .verdict(let verdict): return .done(verdict)
    case .challenge(let challenge):
      try answer(challenge, message)
      return .send
    }
  }

  /// The verdict to report if the connection ends before the next message; nil if there was none.
  public var verdictSoFar: ProverOutcome? { standing }
}

/// The first message of a round: a challenge, or the verdict of a device that has no room for another peer.
///
/// Nothing in it is authenticated. A prover that knows several devices reads it to find the enrolment that it needs.
package enum DeviceGreeting: Sendable {
  /// A challenge, M1.
  case challenge(Challenge)
  /// An unsealed verdict that was sent instead of M1, such as busy.
  case verdict(ProverOutcome)

  /// Decodes the message.
  ///
  /// - Throws: `malformed` if it is neither; `impostor` for a verdict that needs a seal, or has one, since there are no
  ///   keys yet.
  package init(_ message: Span<UInt8>) throws(ProverFault) {
    if let verdict = try Self.earlyVerdict(message) {
      self = .verdict(verdict)
      return
    }
    do throws(EncodingFault) { self = .challenge(try Challenge(message)) } catch { throw .malformed }
  }

  private static func earlyVerdict(_ message: Span<UInt8>) throws(ProverFault) -> ProverOutcome? {
    let verdict: VerdictMessage
    do throws(EncodingFault) { verdict = try VerdictMessage(message) } catch { return nil }
    guard !verdict.isSealed, !verdict.status.needsAuthentication else { throw .impostor }
    return ProverOutcome(status: verdict.status, isAuthenticated: false)
  }
}

/// The next step of the caller of a ``ProverSession``.
public enum ProverStep: Sendable {
  /// The caller sends ``ProverSession/outgoing``, then waits for the verdict.
  case send
  /// The caller waits for the next challenge on the same connection.
  case awaitChallenge
  /// The session is over, with this verdict.
  case done(ProverOutcome)
}

/// The outcome of a round for the prover.
public struct ProverOutcome: Sendable {
  /// The status in M3.
  public let status: Status
  /// Whether the device proved by its seal that it could open the token. If not, the prover must not change anything
  /// that it stores.
  public let isAuthenticated: Bool
  /// The details under the device's seal; empty if there was none.
  public var notice = Notice()

  /// Whether the device had accepted the request before this round, and did not act on it again. ``status`` is then the
  /// outcome of the earlier round as far as the device knows it.
  public var isRepetition: Bool { isAuthenticated && notice.highestRequestNumber != nil }
}

extension ProverOutcome {
  /// Reads M3 of a compatibility round, `[3, status, null]`, which nothing authenticates.
  ///
  /// - Throws: `malformed` if it is not such a message.
  package init(compatibilityVerdict message: Span<UInt8>) throws(ProverFault) {
    do throws(EncodingFault) {
      let verdict = try VerdictMessage(message)
      guard !verdict.isSealed else { throw .unexpected }
      self.init(status: verdict.status, isAuthenticated: false)
    } catch { throw .malformed }
  }
}

/// The reason why a prover ends a session without a verdict.
public enum ProverFault: Error {
  /// The message is not one of this protocol.
  case malformed
  /// M1 names another device than the one of the session. Nothing was sent in answer.
  case anotherDevice
  /// M1 names the right device with another key. Nothing was sent in answer.
  case anotherKey
  /// The peer named the right device, but could not prove that it is this device.
  case impostor
  /// The random source or the cryptography failed.
  case random, cryptography
}

extension ProverSession where Crypto: ~Copyable, Random: ~Copyable {
  /// Answers M1, whose bytes are `message`: leaves M2 in `outgoing`. Throws, and leaves nothing, for an unexpected
  /// device.
  mutating func answer(_ challenge: Challenge, _ message: Span<UInt8>) throws(ProverFault) {
    guard challenge.deviceID == identity.deviceID else { throw .anotherDevice }
    guard challenge.keyID == identity.keyID else { throw .anotherKey }
    required = challenge.required
    var head = MessageBuffer()
    let fresh: FixedBytes<16>
    do throws(RandomFailure) { fresh = try random.fixedBytes() } catch { throw .random }
    do throws(CryptographyFailure) {
      try encodeHead(random: fresh, into: &head)
      let transcript = try Transcript(challenge: message, head: head.bytes, using: &cryptography)
      let keys = try SessionKeys(
        proofKey: identity.proofKey, device: identity.device, transcript: transcript, using: &cryptography)
      try encodeAnswer(head: head.bytes, transcript: transcript, keys: keys)
      pending = PendingRound(
        transcript: transcript, keys: keys, sentReference: sendsReference, sentIntegrity: sendsIntegrity)
    } catch { throw .cryptography }
  }

  private mutating func encodeHead(
    random: FixedBytes<16>, into head: inout MessageBuffer
  ) throws(CryptographyFailure) {
    let reference = sendsReference ? try tokenReference(token.bytes, using: &cryptography) : nil
    do throws(EncodingFault) {
      if let reference {
        try ProofMessageHead.encode(random: random, encoding: .reference, token: reference.bytes, into: &head)
      } else {
        try ProofMessageHead.encode(random: random, encoding: tokenEncoding, token: token.bytes, into: &head)
      }
    } catch { preconditionFailure() }
  }

  private mutating func encodeAnswer(
    head: Span<UInt8>, transcript: Transcript, keys: borrowing SessionKeys
  ) throws(CryptographyFailure) {
    let nonce = transcript.proofNonce
    let integrity: MAC? =
      sendsIntegrity
      ? try measurementProof(
        key: identity.proofKey, nonce: nonce, measurement: identity.integrity, using: &cryptography) : nil
    let device = try measurementProof(
      key: identity.proofKey, nonce: nonce, measurement: identity.device, using: &cryptography)
    var sealed = SealedRequestBuffer()
    do throws(EncodingFault) { try request.encode(into: &sealed) } catch { throw CryptographyFailure() }
    try sealed.seal(
      key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
      using: &cryptography)
    do throws(EncodingFault) {
      try ProofMessage.encode(
        head: head, integrityProof: integrity, deviceProof: device, sealed: sealed.bytes, into: &outgoing)
    } catch { throw CryptographyFailure() }
  }
}

/// A round whose verdict has not arrived yet.
struct PendingRound: ~Copyable {
  let transcript: Transcript
  let keys: SessionKeys
  let sentReference: Bool
  let sentIntegrity: Bool

  init(
    transcript: Transcript, keys: consuming SessionKeys, sentReference: Bool, sentIntegrity: Bool
  ) {
    self.transcript = transcript
    self.keys = keys
    self.sentReference = sentReference
    self.sentIntegrity = sentIntegrity
  }
}

extension ProverSession where Crypto: ~Copyable, Random: ~Copyable {
  /// Reads M3 and returns the next step.
  mutating func finish(
    _ message: Span<UInt8>, _ round: borrowing PendingRound
  ) throws(ProverFault) -> ProverStep {
    let verdict: VerdictMessage
    do throws(EncodingFault) { verdict = try VerdictMessage(message) } catch { throw .malformed }
    guard verdict.isSealed else {
      guard !verdict.status.needsAuthentication else { throw .impostor }
      return afterUnsealed(verdict.status, round)
    }
    try openReply(verdict, round)
    var notice = reply.notice
    if verdict.status != .accepted { notice.refusal = Refusal(word: reply.result.bytes) }
    // Any other word under `internal` is the actuator's own. The command was not denied.
    if verdict.status == .internal, notice.refusal != .unknownToActuator { notice.refusal = nil }
    return afterSealed(ProverOutcome(status: verdict.status, isAuthenticated: true, notice: notice), round)
  }

  private mutating func afterUnsealed(_ status: Status, _ round: borrowing PendingRound) -> ProverStep {
    if status == .tokenUnknown, round.sentReference {
      sendsReference = false
      return .awaitChallenge
    }
    return .done(standing ?? ProverOutcome(status: status, isAuthenticated: false))
  }

  /// Returns the next step after a sealed M3. A command that needs no integrity may still succeed without that proof;
  /// if it does not, the first verdict is the one to report.
  private mutating func afterSealed(_ verdict: ProverOutcome, _ round: borrowing PendingRound) -> ProverStep {
    sendsReference = true
    if verdict.status == .integrityMismatch, round.sentIntegrity, !required.contains(.integrity) {
      sendsIntegrity = false
      standing = verdict
      return .awaitChallenge
    }
    if let standing, verdict.status == .factorMissing {
      return .done(standing)
    }
    return .done(verdict)
  }

  private mutating func openReply(_ verdict: borrowing VerdictMessage, _ round: borrowing PendingRound)
    throws(ProverFault)
  {
    var plaintext = SealedReplyBuffer()
    var authenticated = VerdictContext()
    do throws(EncodingFault) {
      try plaintext.append(verdict.sealed)
      try authenticated.append(round.transcript.hash.bytes)
      try authenticated.append(verdict.status.rawValue)
    } catch { throw .malformed }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: round.keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: authenticated.bytes,
        using: &cryptography)
    } catch { throw .impostor }
    do throws(EncodingFault) { reply = try VerdictBody(plaintext.bytes) } catch { throw .malformed }
  }
}
