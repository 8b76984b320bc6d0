/// The device's side of one connection, which makes challenges and judges answers. It does no I/O.
///
/// Call ``makeChallenge()`` and send ``challenge``; then pass the peer's message to
/// ``respond(to:waitedMilliseconds:actuator:)``, send ``outgoing``, and begin again. The buffers of the session are its
/// only memory; it allocates nothing.
public struct DeviceSession<Environment: DeviceEnvironment>: ~Copyable {
  /// The time that a challenge waits for the first byte of its answer, in milliseconds.
  public static var challengeLifetimeMilliseconds: UInt64 { UInt64(Limit.answer.everywhere) }

  package let deviceID: DeviceID
  let keyID: KeyID
  package var cryptography: Environment.Crypto
  package var key: Environment.Key
  package var store: Environment.Store
  package var policy: Environment.Rules
  package var random: Environment.Random
  package var clock: Environment.Time
  package var challenges: ChallengeSource
  package var opener = TokenOpener()
  package var failures = FailureWindow()
  /// Whether the last answer was `tokenUnknown`, after which an honest prover sends the whole token.
  private var awaitsWholeToken = false
  /// The credential of the message that is being judged, before it is known whether the round is accepted.
  package var credential: RoundCredential?
  package var running = RunningTime()
  /// Whether the last challenge can still be answered. It is good for one answer.
  package var isChallengeOpen = false
  /// Whether the store has recorded the round that is being answered.
  package var isRecorded = false
  /// An activation that was granted and waits for its confirmation.
  package var activation: PendingActivation?
  /// The messages and the checks of signatures that the peer has left between rounds.
  package var mail = MailAllowance()
  /// ECDH with the home of the audit log, once a device without a heap has made a page: see `answerMail`.
  var pageSecret = Secret<32>()
  var hasPageSecret = false
  #if !hasFeature(Embedded)
  /// The last challenge to a user that was issued on this connection.
  package var connectionChallenge: FixedBytes<8>?
  /// The transport of the connection, for the audit log; nil if it is not known.
  package var transport: RoundTransport?
  #endif

  /// M1, ready to be sent.
  public package(set) var challenge = ChallengeBuffer()
  /// M3, ready to be sent.
  public package(set) var outgoing = VerdictBuffer()

  /// Creates the session of one connection. `keyID` is the id of `key`'s public point.
  @inline(__always)
  public init(
    deviceID: DeviceID, keyID: KeyID, cryptography: consuming Environment.Crypto, key: consuming Environment.Key,
    store: consuming Environment.Store, policy: consuming Environment.Rules, random: consuming Environment.Random,
    clock: consuming Environment.Time, challenges: consuming ChallengeSource
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

  /// Begins a round: leaves M1 in ``challenge``.
  ///
  /// - Throws: if the store, the random source or the cryptography fails; the connection must then be closed.
  public mutating func makeChallenge() throws(DeviceFault) {
    isChallengeOpen = false
    activation = nil
    challenge.removeAll()
    let entropy: Secret<32>
    do throws(RandomFailure) { entropy = try random.secret() } catch { throw .random }
    let nonce: Nonce
    do throws(CryptographyFailure) {
      nonce = try challenges.next(entropy: entropy, using: &cryptography)
    } catch { throw .cryptography }
    let now = try now()
    let message = Challenge(
      deviceID: deviceID, nonce: nonce, keyID: keyID, required: policy.commonFactors,
      clock: now)
    do throws(EncodingFault) { try message.encode(into: &challenge) } catch { throw .encoding }
    isChallengeOpen = true
  }

  /// Begins a round with an M1 that was made elsewhere, for the replay of test vectors.
  package mutating func beginRound(challenge message: Span<UInt8>) throws(EncodingFault) {
    isChallengeOpen = false
    challenge.removeAll()
    try challenge.append(message)
    isChallengeOpen = true
  }

  /// Answers a message: leaves M3 in ``outgoing``. An accepted command has been carried out by then.
  ///
  /// - Parameters:
  ///   - message: the peer's message; one of more than 4096 bytes is malformed.
  ///   - waitedMilliseconds: the time from sending M1 to the first byte of `message`.
  ///   - actuator: carries out an accepted command.
  /// - Returns: the status, and the instructions for sending M3.
  public mutating func respond<Machine: Actuator & ~Copyable>(
    to message: Span<UInt8>, waitedMilliseconds: UInt64, actuator: inout Machine
  ) -> RoundOutcome {
    outgoing.removeAll()
    credential = nil
    mail = MailAllowance()
    let status =
      answerUser(message, waitedMilliseconds: waitedMilliseconds)
      ?? appraise(message, waitedMilliseconds: waitedMilliseconds, actuator: &actuator)
    isChallengeOpen = false
    let isProved = outgoing.count > 0
    if !isProved {
      refuse(status)
    }
    isRecorded = false
    let now = clock.monotonicMilliseconds()
    if isFailure(status, isProved: isProved) { failures.record(at: now) }
    return RoundOutcome(
      status: status, isPeerAuthenticated: isProved || status == .accepted,
      credential: status == .accepted ? credential : nil, closesConnection: status == .malformed,
      awaitsConfirmation: activation != nil, delayMilliseconds: failures.delayMilliseconds(at: now))
  }

  /// Returns whether an answer counts towards slowing the connection.
  ///
  /// The first `tokenUnknown` does not count, since an honest prover causes it and then sends its whole token. After a
  /// sealed M3, the next one is the first again.
  private mutating func isFailure(_ status: Status, isProved: Bool) -> Bool {
    let isRepeated = awaitsWholeToken
    if isProved { awaitsWholeToken = false }
    switch status.row.slows {
    case .never: return false
    case .always: return true
    case .whenUnsealed: return !isProved
    case .whenRepeated:
      awaitsWholeToken = true
      return isRepeated
    }
  }

  /// Leaves an M3 without a seal in ``outgoing``, for a message that never came or was not whole.
  public mutating func refuse(_ status: Status) {
    isChallengeOpen = false
    activation = nil
    mail = MailAllowance()
    outgoing.removeAll()
    do throws(EncodingFault) { try VerdictMessage.encode(unsealed: status, into: &outgoing) } catch {
      outgoing.removeAll()
    }
    // A round that was recorded and has no sealed answer, a compatibility round, is in the audit log already.
    if !isRecorded { store.countUnauthenticated(status) }
  }
}

/// The outcome of a round, from which the caller learns how to send M3.
public struct RoundOutcome: Sendable, Equatable {
  /// The status in M3, or `accepted` for an activation or an unlocking.
  public let status: Status
  /// Whether the peer has just proved that it holds a token's keys or an owner's code: the answer is sealed or carries
  /// a MAC, or a compatibility round was accepted. A denied compatibility round proves nothing, since it may be a
  /// recorded one that comes again.
  public let isPeerAuthenticated: Bool
  /// The credential by which the round was accepted; nil if it was not accepted, and for a repetition.
  public let credential: RoundCredential?
  /// Whether the caller must end the connection after M3.
  public let closesConnection: Bool
  /// Whether the same round continues: the peer confirms an activation, without another challenge.
  public let awaitsConfirmation: Bool
  /// Whether the message was mail, so that the last challenge and its time are as they were.
  public var isMail = false
  /// The time that the caller must wait before it sends M3, in milliseconds.
  public let delayMilliseconds: UInt64
}

/// The credential by which a round was accepted. A server counts the places that each credential keeps.
public enum RoundCredential: Sendable, Equatable {
  /// A token, by the id of the key that checked its signature or tag (nil for an unsigned token), and by its `cti` or
  /// `jti`.
  case token(verifyingKey: KeyID?, TokenID)
  /// An owner's code, by its number in the store.
  case code(UInt64)
}

/// A window that slows a connection whose proofs keep failing. It never locks a peer out, since any peer can send wrong
/// proofs.
///
/// Source: docs/protocol.md, Once is once: from the 10th failure in a minute on, each answer waits a second.
package struct FailureWindow {
  private static var windowMilliseconds: UInt32 { 60_000 }
  /// The last times, in milliseconds modulo 2^32: after seven weeks, an old one can look new for a minute.
  private var times = InlineArray<10, UInt32>(repeating: 0)
  private var count = 0

  package init() {}

  package mutating func record(at milliseconds: UInt64) {
    times[count % times.count] = UInt32(truncatingIfNeeded: milliseconds)
    count += 1
  }

  /// Returns the time that an answer at `milliseconds` must wait, in milliseconds.
  package func delayMilliseconds(at milliseconds: UInt64) -> UInt64 {
    guard count >= times.count else { return 0 }
    let oldest = times[count % times.count]
    return UInt32(truncatingIfNeeded: milliseconds) &- oldest < Self.windowMilliseconds ? 1000 : 0
  }
}

/// The time of a device without a clock: the last time that it knew, and the time that has passed since then, within
/// one start.
///
/// It goes back only if the owner lowers the floor. It is never written as a floor, so after a start it begins again at
/// the time that the store knows.
package struct RunningTime {
  /// The last known time, in Unix seconds.
  private var time: UInt64 = 0
  /// The earliest possible time at the last call, in Unix seconds.
  private var least: UInt64 = 0
  /// The reading of the monotonic clock, in milliseconds, that belongs to `time`.
  private var sinceMilliseconds: UInt64 = 0

  /// Returns the time at `milliseconds`, in Unix seconds; `least` is the earliest possible time by now.
  package mutating func unixSeconds(at milliseconds: UInt64, least: UInt64) -> UInt64 {
    // A division of 32 bits counts whole seconds, since a microcontroller has none of 64. A device asks more often than
    // once a year.
    let elapsed = UInt64(UInt32(truncatingIfNeeded: (milliseconds - sinceMilliseconds) >> 3) / 125)
    time += elapsed
    sinceMilliseconds += elapsed * 1000
    // Only the owner lowers a floor, and does so on purpose.
    if time < least || least < self.least { (time, sinceMilliseconds) = (least, milliseconds) }
    self.least = least
    return time
  }
}

extension DeviceSession {
  /// Returns the real clock, in Unix seconds; without one, the last time that the device knew plus the time that has
  /// passed since.
  ///
  /// All code that needs the time calls this, except for the check how far a token's `iat` is ahead, which needs a real
  /// clock.
  package mutating func realClock() throws(DeviceFault) -> UInt64 {
    try realClock(at: clock.monotonicMilliseconds())
  }

  /// Returns the same time; `milliseconds` is a reading of the monotonic clock that was just taken.
  package mutating func realClock(at milliseconds: UInt64) throws(DeviceFault) -> UInt64 {
    if let seconds = clock.unixSeconds() { return seconds }
    return running.unixSeconds(at: milliseconds, least: try store.knownTime())
  }

  /// Returns the device's time, in Unix seconds: the later of the clock floor and ``realClock()``.
  package mutating func now() throws(DeviceFault) -> UInt64 {
    max(try store.clockFloor(), try realClock())
  }
}
