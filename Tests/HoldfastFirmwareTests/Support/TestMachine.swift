import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastFirmware

/// A device session over any store, with pinned randomness: its answers depend only on store and messages.
final class TestMachine<Store: DeviceStore & ~Copyable> {
  enum Environment: DeviceEnvironment {
    typealias Crypto = OpenSSLCryptography
    typealias Key = P256PrivateKey
    typealias Rules = FirmwarePolicy
    typealias Random = TestRandom
    typealias Time = TestClock
  }
  typealias Session = DeviceSession<Environment>

  private(set) var session: Session
  let actuator = CountingMachine()
  private(set) var response: RoundOutcome?

  init(_ store: consuming Store, of firmware: TestFirmware, bootCount: UInt64 = 1) throws {
    var cryptography = OpenSSLCryptography()
    session = Session(
      deviceID: firmware.deviceID, keyID: try keyID(of: firmware.point, using: &cryptography),
      cryptography: cryptography, key: try P256PrivateKey(scalar: TestFirmware.scalar()), store: store,
      policy: try firmware.rules(), random: TestRandom(state: bootCount), clock: firmware.clock,
      challenges: ChallengeSource(
        seed: try ChallengeSource.seed(from: TestFirmware.scalar(), using: &cryptography), bootCount: bootCount,
        connection: 1))
  }

  /// M1.
  func challenge() throws -> [UInt8] {
    try session.makeChallenge()
    return session.challenge.array
  }

  /// M3 for `message`.
  func respond(_ message: [UInt8], waitedMilliseconds: UInt64 = 0) -> [UInt8] {
    var machine = actuator
    response = session.respond(to: message.span, waitedMilliseconds: waitedMilliseconds, actuator: &machine)
    return session.outgoing.array
  }

  /// The answer to a message about mail after the last round; nil if it is none.
  func answerMail(_ message: [UInt8]) -> [UInt8]? {
    guard session.answerMail(message.span) != nil else { return nil }
    return session.outgoing.array
  }

  /// Looks at the store, or changes it.
  func withStore<Result>(_ body: (inout Store) throws -> Result) rethrows -> Result { try body(&session.store) }
}

extension TestMachine where Store: ~Copyable {
  /// A whole round.
  func round(
    _ prover: TestProver, _ command: String = "unlock", parameters: [String] = [], flaws: Flaws = [],
    otp: UserCode? = nil, seal: UserCode? = nil, number: UInt64? = nil
  ) throws -> TestVerdict {
    let answer = try prover.answer(
      try challenge(), command: command, parameters: parameters, flaws: flaws, otp: otp, seal: seal, number: number)
    return try prover.open(respond(answer.message), after: answer)
  }

  func status(
    _ prover: TestProver, _ command: String = "unlock", flaws: Flaws = [], otp: UserCode? = nil, seal: UserCode? = nil
  ) throws -> Status {
    try round(prover, command, flaws: flaws, otp: otp, seal: seal).status
  }

  /// The result of delivering a bulletin after a round that a prover is accepted in; nil if the answer is none to mail.
  func deliver(_ bulletin: [UInt8], by prover: TestProver) throws -> BulletinResult? {
    try afterRound(of: prover) { deliverAgain(bulletin) }
  }

  /// The result of another delivery on the same challenge.
  func deliverAgain(_ bulletin: [UInt8]) -> BulletinResult? {
    result(of: .bulletin, bulletin)
  }

  /// The sealed page that begins with an entry, or nil, after a round that a prover is accepted in; the outer nil if the answer is none
  /// to mail.
  func page(from: UInt64 = 0, by prover: TestProver) throws -> [UInt8]?? {
    try afterRound(of: prover) { pageAgain(from: from) }
  }

  /// Another page on the same challenge.
  func pageAgain(from: UInt64 = 0) -> [UInt8]?? {
    var message: [UInt8] = []
    MailMessage.encode(.page(from: from), into: &message)
    return answerMail(message).flatMap { (try? PageAnswer($0.span)).map(\.sealed) }
  }

  /// The result of handing over a receipt after a round that a prover is accepted in; nil if the answer is none to mail.
  func acknowledge(_ receipt: [UInt8], by prover: TestProver) throws -> BulletinResult? {
    try afterRound(of: prover) { acknowledgeAgain(receipt) }
  }

  /// The result of another receipt on the same challenge.
  func acknowledgeAgain(_ receipt: [UInt8]) -> BulletinResult? {
    result(of: .receipt, receipt)
  }

  /// The result of `body`, on the challenge after a round; nil if the prover is not accepted in it.
  private func afterRound<Result>(of prover: TestProver, _ body: () -> Result?) throws -> Result? {
    guard try status(prover, "status") == .accepted else { return nil }
    _ = try challenge()
    return body()
  }

  private func result(of kind: MailMessage.Kind, _ contents: [UInt8]) -> BulletinResult? {
    var message: [UInt8] = []
    MailMessage.encode(kind, contents.span, into: &message)
    return answerMail(message).flatMap { try? BulletinAnswer($0.span).result }
  }

  /// The list of the device's bulletins of the key that signed the last round's token.
  func bulletinList() -> BulletinList? {
    var message: [UInt8] = []
    MailMessage.encode(.list, into: &message)
    return answerMail(message).flatMap { try? BulletinAnswer($0.span).list }
  }

  /// A whole compatibility round.
  func compatibility(
    _ prover: TestProver, nonce: UInt8, _ command: String = "unlock", flaws: Flaws = []
  ) throws -> Status {
    _ = try challenge()
    let nonce = [UInt8](repeating: nonce, count: 16)
    let message = try prover.compatibilityAnswer(nonce: nonce, command: command, flaws: flaws)
    return try VerdictMessage(respond(message).span).status
  }
}
