/// The device's side of one connection: makes challenges, judges answers. It does no I/O.
///
/// Call ``makeChallenge()`` and send ``challenge``; then ``respond(to:waitedMilliseconds:actuator:)`` with what came, send
/// ``outgoing``, and begin again. Its buffers are its only memory; nothing is allocated.
public struct DeviceSession<
  Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable, Store: DeviceStore & ~Copyable,
  Rules: Policy & ~Copyable, Random: RandomSource & ~Copyable, Time: Clock & ~Copyable
>: ~Copyable {
  /// How long a challenge waits for the first byte of its answer, in milliseconds.
  public static var challengeLifetimeMilliseconds: UInt64 { 30_000 }

  let deviceID: DeviceID
  let keyID: KeyID
  var cryptography: Crypto
  var key: Key
  package var store: Store
  var policy: Rules
  var random: Random
  var clock: Time
  var challenges: ChallengeSource
  var opener = TokenOpener()
  var failures = FailureWindow()
  /// Whether the last answer was `tokenUnknown`: what an honest prover sends next is the token as a whole.
  private var awaitsWholeToken = false
  /// What the message that is being judged shows, before it is known whether the round is accepted.
  var credential: RoundCredential?
  var running = RunningTime()
  /// Whether the last challenge is still to be answered: it is good for one answer.
  var isChallengeOpen = false
  /// An activation that was granted and waits for its confirmation.
  var activation: PendingActivation?

  /// M1, ready to be sent.
  public internal(set) var challenge = ByteBuffer<64>()
  /// M3, ready to be sent.
  public internal(set) var outgoing = ByteBuffer<1152>()

  /// `keyID` is the id of `key`'s public point.
  @inline(__always)
  public init(
    deviceID: DeviceID, keyID: KeyID, cryptography: consuming Crypto, key: consuming Key, store: consuming Store,
    policy: consuming Rules, random: consuming Random, clock: consuming Time, challenges: consuming ChallengeSource
  ) {
    self.deviceID = deviceID
    self.keyID = keyID
    self.cryptography = cryptography
    self.key = key
    self.store = store
    self.policy = policy
    self.random = random
    self.clock = clock
    self.challenges = challenges
  }

  /// Begins a round: leaves M1 in ``challenge``. Throws when the store, the random source or the cryptography fails, and
  /// the connection must then be closed.
  public mutating func makeChallenge() throws(SessionFault) {
    isChallengeOpen = false
    activation = nil
    challenge.removeAll()
    store.beginRound()
    let entropy: Secret<32>
    do throws(RandomFailure) { entropy = try random.secret() } catch { throw .random }
    let nonce: FixedBytes<16>
    do throws(CryptographyFailure) {
      nonce = try challenges.next(entropy: entropy, using: &cryptography)
    } catch { throw .cryptography }
    let now: UInt64
    do throws(StoreFailure) { now = try self.now() } catch { throw .store }
    let message = Challenge(
      deviceID: deviceID, nonce: nonce, keyID: keyID, required: policy.commonFactors,
      clock: now)
    do throws(EncodingFault) { try message.encode(into: &challenge) } catch { throw .encoding }
    isChallengeOpen = true
  }

  /// Begins a round with an M1 that was made elsewhere: for the replay of test vectors.
  package mutating func beginRound(challenge message: Span<UInt8>) throws(EncodingFault) {
    isChallengeOpen = false
    challenge.removeAll()
    try challenge.append(message)
    isChallengeOpen = true
  }

  /// Answers a message: leaves M3 in ``outgoing``, after the command was carried out if it was accepted.
  ///
  /// - Parameters:
  ///   - message: what came; longer than 4096 bytes is malformed.
  ///   - waitedMilliseconds: from sending M1 to the first byte of `message`.
  ///   - actuator: carries out an accepted command.
  public mutating func respond<Machine: Actuator & ~Copyable>(
    to message: Span<UInt8>, waitedMilliseconds: UInt64, actuator: inout Machine
  ) -> Response {
    outgoing.removeAll()
    credential = nil
    let status =
      judgeUser(message, waitedMilliseconds: waitedMilliseconds)
      ?? judge(message, waitedMilliseconds: waitedMilliseconds, actuator: &actuator)
    isChallengeOpen = false
    let isProved = outgoing.count > 0
    if !isProved {
      refuse(status)
    }
    let now = clock.monotonicMilliseconds()
    if isFailure(status, isProved: isProved) { failures.record(at: now) }
    return Response(
      status: status, isPeerProved: isProved || status == .accepted,
      credential: status == .accepted ? credential : nil, closesConnection: status == .malformed,
      awaitsConfirmation: activation != nil, delayMilliseconds: failures.delayMilliseconds(at: now))
  }

  /// Whether an answer counts towards slowing the connection.
  ///
  /// The first `tokenUnknown` does not, since an honest prover causes it, and then sends its token as a whole. A sealed M3
  /// lets the next one be the first again.
  private mutating func isFailure(_ status: Status, isProved: Bool) -> Bool {
    let isRepeated = awaitsWholeToken
    if isProved { awaitsWholeToken = false }
    switch status {
    case .tokenInvalid, .deviceMismatch, .integrityMismatch: return true
    case .otpRejected: return !isProved
    case .tokenUnknown:
      awaitsWholeToken = true
      return isRepeated
    default: return false
    }
  }

  /// Leaves an M3 without a seal in ``outgoing``: for a message that never came, or not whole.
  public mutating func refuse(_ status: Status) {
    isChallengeOpen = false
    activation = nil
    outgoing.removeAll()
    do throws(EncodingFault) { try VerdictMessage.encode(unsealed: status, into: &outgoing) } catch {
      outgoing.removeAll()
    }
    store.countUnproved(status)
  }
}

/// What the caller does with an answered round.
public struct Response: Sendable, Equatable {
  public let status: Status
  /// Whether the peer has proved here and now that it holds a token's keys: M3 is sealed, or a compatibility round was
  /// accepted. A denied compatibility round shows nothing, since it may be a recorded one that comes again.
  public let isPeerProved: Bool
  /// What the round was accepted by; nil when it was not accepted.
  public let credential: RoundCredential?
  /// Whether the connection ends after M3.
  public let closesConnection: Bool
  /// Whether the same round goes on: the peer confirms an activation, without another challenge.
  public let awaitsConfirmation: Bool
  /// How long M3 waits before it is sent.
  public let delayMilliseconds: UInt64
}

/// What an accepted round was accepted by: a server counts the places that one of them keeps.
public enum RoundCredential: Sendable, Equatable {
  /// A token, by the id of the key that its signature or tag was checked with (nil for one without) and its `cti` or `jti`.
  case token(verifyingKey: KeyID?, TokenID)
  /// An owner's code, by its number in the store.
  case code(UInt64)
}

/// Why a round could not even begin.
public enum SessionFault: Error {
  case store, random, cryptography, encoding
}
