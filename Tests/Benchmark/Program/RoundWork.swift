import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// A remembered round on the device without I/O: M1 is made, M2 is judged, M3 is sealed. The store is in memory.
///
/// The M2 answers an M1 that was kept, so that the prover's half takes no time; the M1 that is made each time is thrown away.
final class RoundWork {
  private enum Environment: DeviceEnvironment {
    typealias Crypto = OpenSSLCryptography
    typealias Key = P256PrivateKey
    typealias Store = MemoryStore
    typealias Rules = TestPolicy
    typealias Random = TestRandom
    typealias Time = TestClock
  }

  private let store: MemoryStore
  private var session: DeviceSession<Environment>
  private var lock = OpeningLock()
  private var challenge: [UInt8] = []
  private var answer: [UInt8] = []
  private var expected: [UInt8] = []

  init(_ inputs: Inputs) throws {
    store = try MemoryStore(trusting: inputs.issuer)
    store.floor = testTime
    var cryptography = OpenSSLCryptography()
    let key = try Inputs.deviceKey()
    let id = try keyID(of: key.publicPoint, using: &cryptography)
    session = DeviceSession(
      deviceID: Inputs.claims.audience, keyID: id, cryptography: cryptography, key: key, store: store,
      policy: TestPolicy(),
      random: TestRandom(), clock: TestClock(),
      challenges: ChallengeSource(seed: secret([UInt8](repeating: 9, count: 32)), bootCount: 1, connection: 1))
    let prover = TestProver(Inputs.claims, token: inputs.token)
    for flaws in [[], .asReference] as [Flaws] {
      try session.makeChallenge()
      challenge = session.challenge.array
      let answer = try prover.answer(challenge, command: "unlock", flaws: flaws)
      self.answer = answer.message
      guard respond(), try prover.open(session.outgoing.array, after: answer).result == "unlocked" else {
        throw RoundDenied()
      }
      expected = session.outgoing.array
    }
  }

  func perform() throws -> Bool {
    let challenge = challenge
    try session.makeChallenge()
    try session.beginRound(challenge: challenge.span)
    defer { store.rounds.removeAll(keepingCapacity: true) }
    return respond() && session.outgoing.array == expected
  }

  /// M1 of a round.
  func challenged() throws -> [UInt8] {
    try session.makeChallenge()
    return session.challenge.array
  }

  /// M3 to an M2.
  func answered(_ answer: [UInt8]) -> [UInt8] {
    store.rounds.removeAll(keepingCapacity: true)
    _ = session.respond(to: answer.span, waitedMilliseconds: 0, actuator: &lock)
    return session.outgoing.array
  }

  private func respond() -> Bool {
    let answer = answer
    return session.respond(to: answer.span, waitedMilliseconds: 0, actuator: &lock).status == .accepted
  }
}

/// A round that was not accepted, or whose messages could not be moved.
struct RoundDenied: Error {
  var status: Status?
}

/// An actuator that answers every command with `unlocked`, and remembers none.
struct OpeningLock: Actuator {
  func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
    let text: StaticString = "unlocked"
    do throws(EncodingFault) { try result.append(BoundedText<32>(text).bytes) } catch { throw ActuatorFailure() }
  }
}
