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
    let entropy: Secret<32>
    do throws(RandomFailure) { entropy = try random.secret() } catch { throw .random }
    let nonce: FixedBytes<16>
    do throws(CryptographyFailure) {
      nonce = try challenges.next(entropy: entropy, using: &cryptography)
    } catch { throw .cryptography }
    let floor: UInt64
    do throws(StoreFailure) { floor = try store.clockFloor() } catch { throw .store }
    let message = Challenge(
      deviceID: deviceID, nonce: nonce, keyID: keyID, required: policy.commonFactors,
      clock: max(floor, clock.unixSeconds() ?? 0))
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
    let status =
      judgeUser(message, waitedMilliseconds: waitedMilliseconds)
      ?? judge(message, waitedMilliseconds: waitedMilliseconds, actuator: &actuator)
    isChallengeOpen = false
    let isProved = outgoing.count > 0
    if !isProved {
      refuse(status)
    }
    let now = clock.monotonicMilliseconds()
    switch status {
    case .tokenInvalid, .deviceMismatch, .integrityMismatch: failures.record(at: now)
    case .otpRejected where !isProved: failures.record(at: now)
    default: break
    }
    return Response(
      status: status, isPeerProved: isProved || status == .accepted, closesConnection: status == .malformed,
      awaitsConfirmation: activation != nil, delayMilliseconds: failures.delayMilliseconds(at: now))
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
  /// Whether the connection ends after M3.
  public let closesConnection: Bool
  /// Whether the same round goes on: the peer confirms an activation, without another challenge.
  public let awaitsConfirmation: Bool
  /// How long M3 waits before it is sent.
  public let delayMilliseconds: UInt64
}

/// Why a round could not even begin.
public enum SessionFault: Error {
  case store, random, cryptography, encoding
}
