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

/// Slows a connection whose proofs keep failing: never locks anybody out, since anybody can send wrong ones.
///
/// Source: docs/protocol.md, Once is once: from the 10th failure in a minute on, each answer waits a second.
struct FailureWindow {
  private static let windowMilliseconds: UInt64 = 60_000
  private var times = InlineArray<10, UInt64>(repeating: 0)
  private var count = 0

  mutating func record(at milliseconds: UInt64) {
    times[count % times.count] = milliseconds
    count += 1
  }

  /// How long an answer at `milliseconds` has to wait.
  func delayMilliseconds(at milliseconds: UInt64) -> UInt64 {
    guard count >= times.count else { return 0 }
    let oldest = times[count % times.count]
    return milliseconds - oldest < Self.windowMilliseconds ? 1000 : 0
  }
}

/// The time of a device without a clock: the last time that it knew, and what has passed since then, within one start.
///
/// It goes back only where the owner lowers the floor, and is never written as a floor: after a start it begins again at what
/// the store knows.
struct RunningTime {
  /// Unix seconds.
  private var time: UInt64 = 0
  /// The earliest that it could be when it was asked for last.
  private var least: UInt64 = 0
  /// When `time` was so, in the milliseconds of the clock that only goes forward.
  private var sinceMilliseconds: UInt64 = 0

  /// Returns the time at `milliseconds`, in Unix seconds; `least` is the earliest that it can be by now.
  mutating func unixSeconds(at milliseconds: UInt64, least: UInt64) -> UInt64 {
    // Whole seconds, by a division of 32 bits: a microcontroller has none of 64. A device asks more often than once a year.
    let elapsed = UInt64(UInt32(truncatingIfNeeded: (milliseconds - sinceMilliseconds) >> 3) / 125)
    time += elapsed
    sinceMilliseconds += elapsed * 1000
    // Only the owner lowers a floor, and then means it.
    if time < least || least < self.least { (time, sinceMilliseconds) = (least, milliseconds) }
    self.least = least
    return time
  }
}

extension DeviceSession
where
  Crypto: ~Copyable, Key: ~Copyable, Store: ~Copyable, Rules: ~Copyable, Random: ~Copyable, Time: ~Copyable
{
  /// The real clock, in Unix seconds; where there is none, the time that has passed since the device knew it last.
  ///
  /// Everything that asks for the time asks here, but for how far a token's `iat` may be ahead: only a real clock says that.
  package mutating func realClock() throws(StoreFailure) -> UInt64 {
    try realClock(at: clock.monotonicMilliseconds())
  }

  /// The same, where the clock that only goes forward has just been read: `milliseconds`.
  mutating func realClock(at milliseconds: UInt64) throws(StoreFailure) -> UInt64 {
    if let seconds = clock.unixSeconds() { return seconds }
    return running.unixSeconds(at: milliseconds, least: try store.knownTime())
  }

  /// The device's time, in Unix seconds: the later of the clock floor and ``realClock()``.
  mutating func now() throws(StoreFailure) -> UInt64 {
    max(try store.clockFloor(), try realClock())
  }
}
