/// The prover's side of one connection: answers challenges, reads verdicts. It does no I/O.
///
/// Give it every message that comes, by ``receive(_:)``, and do what it says. It sends nothing to a device that is not the
/// one it expects, sends the token whole when the device does not remember it, once a connection, and tries again without
/// an integrity proof when that proof was wrong and not every command needs one.
public struct ProverSession<Crypto: Cryptography & ~Copyable, Random: RandomSource & ~Copyable>: ~Copyable {
  /// What is proved, and to whom.
  public struct Identity: ~Copyable {
    let deviceID: DeviceID
    let keyID: KeyID
    let proofKey: Secret<16>
    let integrity: Secret<32>
    let device: Secret<32>

    /// - Parameters:
    ///   - deviceID: the device's, from its descriptor, as is `keyID`.
    ///   - proofKey: the app's measurement proof key, 16 bytes.
    ///   - integrity: IM of the live process, 32 bytes.
    ///   - device: DM of the live process, 32 bytes.
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
  /// A verdict that stands unless another round betters it.
  var standing: ProverVerdict?

  /// What the device said under its seal in the last round; empty otherwise.
  public internal(set) var reply = Reply()
  /// M2, ready to be sent.
  public internal(set) var outgoing = MessageBuffer()

  /// - Parameters:
  ///   - token: the measurement token, at most 3072 bytes, in `encoding`.
  ///   - isRemembered: whether this device accepted the token before, so that a reference may do.
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

  /// The number of the request. Each request to the device must have a larger one than those before it, and keeps it when it is
  /// sent once more: set it only when the last verdict was the end of a request.
  public var requestNumber: UInt64? {
    get { request.number }
    set { request.number = newValue }
  }

  /// Takes a message from the device and says what to do next.
  public mutating func receive(_ message: Span<UInt8>) throws(ProverFault) -> ProverStep {
    outgoing.removeAll()
    if let round = pending.take() {
      return try conclude(message, round)
    }
    switch try DeviceGreeting(message) {
    case .verdict(let verdict): return .done(verdict)
    case .challenge(let challenge):
      try answer(challenge, message)
      return .send
    }
  }

  /// What to report when the connection ends before the next message: the last verdict, if there was one.
  public var verdictSoFar: ProverVerdict? { standing }
}

/// The first message of a round: a challenge, or the verdict of a device that has no room for another peer.
///
/// Nothing in it is authenticated. A prover that knows several devices reads it to find the enrolment that it needs.
public enum DeviceGreeting: Sendable {
  /// M1.
  case challenge(Challenge)
  /// An unsealed verdict in place of M1, such as busy.
  case verdict(ProverVerdict)

  /// Reads the message.
  ///
  /// - Throws: `malformed` when it is neither; `impostor` for a verdict that needs a seal, or has one: there are no keys yet.
  public init(_ message: Span<UInt8>) throws(ProverFault) {
    if let verdict = try Self.earlyVerdict(message) {
      self = .verdict(verdict)
      return
    }
    do throws(EncodingFault) { self = .challenge(try Challenge(message)) } catch { throw .malformed }
  }

  private static func earlyVerdict(_ message: Span<UInt8>) throws(ProverFault) -> ProverVerdict? {
    let verdict: VerdictMessage
    do throws(EncodingFault) { verdict = try VerdictMessage(message) } catch { return nil }
    guard !verdict.isSealed, !verdict.status.needsAuthentication else { throw .impostor }
    return ProverVerdict(status: verdict.status, isAuthenticated: false)
  }
}

/// What the caller does next.
public enum ProverStep: Sendable {
  /// Send ``ProverSession/outgoing``, then wait for the verdict.
  case send
  /// Wait for the next challenge on the same connection.
  case awaitChallenge
  /// It is over.
  case done(ProverVerdict)
}

/// How a round ended for the prover.
public struct ProverVerdict: Sendable {
  public let status: Status
  /// Whether the device proved, by its seal, that it could open the token. If not, nothing that is stored may change.
  public let isAuthenticated: Bool
  public var notice = Notice()

  /// Whether the device had accepted the request before this round, and did not act on it again: ``status`` is then the outcome
  /// of the earlier round as far as the device knows it.
  public var isRepetition: Bool { isAuthenticated && notice.highestRequestNumber != nil }
}

/// Why a prover ends a session without a verdict.
public enum ProverFault: Error {
  /// The message is not one of this protocol.
  case malformed
  /// M1 names another device than the one of the session. Nothing was sent in answer.
  case anotherDevice
  /// M1 names the right device with another key. Nothing was sent in answer.
  case anotherKey
  /// The other end named the right device, and could not prove that it is this device.
  case impostor
  case random, cryptography
}

extension ProverSession where Crypto: ~Copyable, Random: ~Copyable {
  /// Answers M1, whose bytes are `message`: leaves M2 in `outgoing`, or nothing when the device is not the expected one.
  mutating func answer(_ challenge: Challenge, _ message: Span<UInt8>) throws(ProverFault) {
    guard challenge.deviceID == identity.deviceID else { throw .anotherDevice }
    guard challenge.keyID == identity.keyID else { throw .anotherKey }
    required = challenge.required
    var head = MessageBuffer()
    let fresh: FixedBytes<16>
    do throws(RandomFailure) { fresh = try random.fixedBytes() } catch { throw .random }
    encodeHead(random: fresh, into: &head)
    do throws(CryptographyFailure) {
      let transcript = try Transcript(challenge: message, head: head.bytes, using: &cryptography)
      let keys = try SessionKeys(
        proofKey: identity.proofKey, device: identity.device, transcript: transcript, using: &cryptography)
      try encodeAnswer(head: head.bytes, transcript: transcript, keys: keys)
      pending = PendingRound(
        transcript: transcript, keys: keys, sentReference: sendsReference, sentIntegrity: sendsIntegrity)
    } catch { throw .cryptography }
  }

  private mutating func encodeHead(random: FixedBytes<16>, into head: inout MessageBuffer) {
    var reference: TokenReference?
    if sendsReference {
      do throws(CryptographyFailure) {
        reference = try tokenReference(token.bytes, using: &cryptography)
      } catch { sendsReference = false }
    }
    do throws(EncodingFault) {
      if let reference {
        try AnswerHead.encode(random: random, encoding: .reference, token: reference.bytes, into: &head)
      } else {
        try AnswerHead.encode(random: random, encoding: tokenEncoding, token: token.bytes, into: &head)
      }
    } catch { preconditionFailure() }
  }

  private mutating func encodeAnswer(
    head: Span<UInt8>, transcript: Transcript, keys: borrowing SessionKeys
  ) throws(CryptographyFailure) {
    let nonce = transcript.proofNonce
    let integrity: FixedBytes<32>? =
      sendsIntegrity
      ? try measurementProof(
        key: identity.proofKey, nonce: nonce, measurement: identity.integrity, using: &cryptography) : nil
    let device = try measurementProof(
      key: identity.proofKey, nonce: nonce, measurement: identity.device, using: &cryptography)
    var sealed = ByteBuffer<768>()
    do throws(EncodingFault) { try request.encode(into: &sealed) } catch { throw CryptographyFailure() }
    try sealed.seal(
      key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
      using: &cryptography)
    do throws(EncodingFault) {
      try Answer.encode(
        head: head, integrityProof: integrity, deviceProof: device, sealed: sealed.bytes, into: &outgoing)
    } catch { throw CryptographyFailure() }
  }
}

/// A round whose verdict is still to come.
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
  /// Reads M3 and says whether it is over.
  mutating func conclude(
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
    return afterSealed(ProverVerdict(status: verdict.status, isAuthenticated: true, notice: notice), round)
  }

  private mutating func afterUnsealed(_ status: Status, _ round: borrowing PendingRound) -> ProverStep {
    if status == .tokenUnknown, round.sentReference {
      sendsReference = false
      return .awaitChallenge
    }
    return .done(standing ?? ProverVerdict(status: status, isAuthenticated: false))
  }

  /// A command that needs no integrity may still go through without that proof; otherwise the first verdict stands.
  private mutating func afterSealed(_ verdict: ProverVerdict, _ round: borrowing PendingRound) -> ProverStep {
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
    var plaintext = ByteBuffer<1088>()
    var authenticated = ByteBuffer<33>()
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
    do throws(EncodingFault) { reply = try Reply(plaintext.bytes) } catch { throw .malformed }
  }
}
