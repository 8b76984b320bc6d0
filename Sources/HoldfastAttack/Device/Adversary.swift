import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastProver
import HoldfastTransport

/// An adversary with an enrolled prover, who attacks the prover's device.
///
/// It never shows or stores a secret. It runs on one thread; only peers that send slowly have another one.
package struct Adversary: ~Copyable {
  /// The limits of the attacks, and what they may use.
  package struct Options: Sendable {
    /// The command of the honest rounds, which does no harm.
    package var command: BoundedText<32>
    /// A command that needs the integrity proof. It is never sent with all that it needs.
    package var guarded: BoundedText<32>
    /// A command that needs a one-time password.
    package var passwordCommand: BoundedText<32>
    /// Whether the device's policy allows compatibility rounds on purpose.
    package var allowsCompatibility = false
    /// Whether attacks may use up uses and codes, could move the clock floor, and may lock the user out.
    package var isDestructive = false
    /// The time for one answer that the device does not slow down, in milliseconds.
    package var timeoutMilliseconds: Int

    /// Creates options that destroy nothing.
    package init(
      command: BoundedText<32>, guarded: BoundedText<32>, passwordCommand: BoundedText<32>, timeoutMilliseconds: Int
    ) {
      (self.command, self.guarded, self.passwordCommand) = (command, guarded, passwordCommand)
      self.timeoutMilliseconds = timeoutMilliseconds
    }
  }

  let endpoint: Endpoint
  let descriptor: DeviceDescriptor
  let token: [UInt8]
  let encoding: TokenEncoding
  let report: IssuanceReport?
  let persona: Persona
  var options: Options
  /// The keys of an issuer that the device trusts.
  var issuer: TrustedIssuer?
  /// The public key of an issuer that the device trusts.
  var issuerPoint: P256Point?
  /// A user of the device with a one-time password that was not used yet.
  private(set) var code: UserCode?
  /// A later one of the same user.
  private(set) var laterCode: UserCode?
  var random = SystemRandom()
  /// The status of an honest round.
  private(set) var honestStatus = Status.accepted
  private var nextNumber: UInt64
  /// The challenges that were answered.
  private var answered: Set<Nonce> = []
  /// Whether a challenge came again, after it had been answered, since this was last set to false.
  var hasSeenRepetition = false
  /// The device's time in its last challenge.
  private(set) var deviceTime: UInt64?
  private var silenceCount = 0
  /// Whether the device served the last honest prover.
  var isServing = true
  /// Whether the device serves one peer at a time, as on a line.
  var isLine: Bool
  /// Whether this host may have several connections to the device at once. RFCOMM has one between two adapters.
  var mayCrowd: Bool {
    if case .bluetooth(_, .rfcomm) = endpoint.address { false } else { !isLine }
  }
  /// The connection to a line, which one attack after the other uses.
  private var keptLine: Connection?
  /// The answer to an honest token in JOSE, once one was presented.
  var joseReply: Reply?
  /// An answer that waits until it is too late.
  var waiting: LateAnswer?

  /// Creates an adversary.
  ///
  /// - Parameters:
  ///   - endpoint: the device's endpoint.
  ///   - enrolment: the prover's enrolment.
  ///   - measurements: the measurements of this process.
  ///   - firstNumber: the first of many consecutive request numbers that belong to the adversary.
  package init(
    of endpoint: Endpoint, as enrolment: Enrolment, _ measurements: borrowing ProvableMeasurements,
    firstNumber: UInt64, options: Options
  ) {
    self.endpoint = endpoint
    descriptor = enrolment.descriptor
    (token, encoding, report) = (enrolment.token, enrolment.encoding, enrolment.report)
    persona = Persona(
      proofKey: measurements.key.copy(), integrity: measurements.integrity.copy(), device: measurements.device.copy())
    issuerPoint = enrolment.terms?.key.point
    nextNumber = firstNumber
    isLine = endpoint.scheme.isSerial
    self.options = options
  }

  /// Gives the adversary the keys of an issuer that the device trusts.
  package mutating func take(issuer: consuming IssuerSecrets<P256PrivateKey>) {
    issuerPoint = issuer.signing.publicPoint
    self.issuer = TrustedIssuer(issuer)
  }

  /// Gives the adversary a user's one-time password, and perhaps a later one.
  package mutating func take(code: UserCode, later: UserCode?) { (self.code, laterCode) = (code, later) }

  /// Whether honest rounds may be accepted: they use nothing up.
  package static func mayBeAccepted(_ report: IssuanceReport?, isDestructive: Bool) -> Bool {
    isDestructive || report.map { $0.number(.maximumUses) == nil } ?? false
  }

  var target: Target { Target(id: descriptor.deviceID, keyID: descriptor.keyID) }

  /// The time for one answer: the second that a device takes after ten failures, and the device's own time. Once the device was
  /// silent several times, it is shorter.
  var answerMilliseconds: Int {
    let whole = options.timeoutMilliseconds + Self.slowingMilliseconds
    return silenceCount < 3 ? whole : min(whole, 2500)
  }

  private static let slowingMilliseconds = 1000

  /// The time in which a challenge must come. Once the device serves nobody, each attack only looks whether it does again.
  private var challengeMilliseconds: Int { isServing ? answerMilliseconds : min(answerMilliseconds, 1000) }

  /// The end of the time for one answer.
  var answerDeadline: Deadline { Deadline(afterMilliseconds: answerMilliseconds) }
}

extension Adversary {
  /// Connects, and waits for a challenge.
  mutating func connect() throws(AttackFault) -> Line {
    do throws(AttackFault) {
      let line = try Line(
        to: endpoint, over: keptLine, of: target, timeoutMilliseconds: challengeMilliseconds)
      if isLine { keptLine = line.connection }
      note(line)
      return line
    } catch {
      if case .noChallenge(.silence) = error { silenceCount += 1 }
      throw error
    }
  }

  /// Waits for the next challenge on a connection.
  mutating func proceed(on line: Line) throws(AttackFault) {
    try line.awaitChallenge(of: target, by: answerDeadline)
    note(line)
  }

  private mutating func note(_ line: Line) {
    deviceTime = line.clock ?? deviceTime
    if answered.contains(line.nonce) { hasSeenRepetition = true }
  }

  /// Takes the next number of a request.
  mutating func number() -> UInt64 {
    defer { nextNumber += 1 }
    return nextNumber
  }

  /// Returns the plaintext of a request.
  mutating func request(
    _ command: BoundedText<32>? = nil, number: UInt64? = nil, otp: UserCode? = nil, parameters: [String] = []
  ) -> [UInt8] {
    var request = Request(command: command ?? options.command)
    request.number = number ?? self.number()
    request.codes[.otp] = otp
    for text in parameters { try? request.append(parameter: BoundedText<64>(text) ?? BoundedText()) }
    var bytes: [UInt8] = []
    request.encode(into: &bytes)
    return bytes
  }

  /// Makes an honest M2 with the whole token.
  mutating func draft(on line: Line, request: [UInt8]? = nil) throws(AttackFault) -> Draft {
    let plaintext = request ?? self.request()
    return try Draft(
      answering: line.challenge, as: persona, encoding, token, request: plaintext, random: &random)
  }

  /// Makes an M2 of another prover, or with another token.
  mutating func draft(
    on line: Line, as other: Persona, _ encoding: TokenEncoding, _ token: [UInt8], request: [UInt8]? = nil
  ) throws(AttackFault) -> Draft {
    let plaintext = request ?? self.request()
    return try Draft(answering: line.challenge, as: other, encoding, token, request: plaintext, random: &random)
  }

  /// Makes an M2 of this prover with another token.
  mutating func draft(on line: Line, token: [UInt8], _ encoding: TokenEncoding) throws(AttackFault) -> Draft {
    let plaintext = request()
    return try Draft(answering: line.challenge, as: persona, encoding, token, request: plaintext, random: &random)
  }

  /// Makes an honest M2 with the token's reference.
  mutating func draftByReference(on line: Line, request: [UInt8]? = nil) throws(AttackFault) -> Draft {
    try draft(on: line, as: persona, .reference, try reference(of: token), request: request)
  }

  /// Returns the reference of a token.
  func reference(of token: [UInt8]) throws(AttackFault) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return [UInt8](try tokenReference(token.span, using: &cryptography).bytes)
    } catch { throw .cryptography }
  }

  /// Sends M2, and reads the answer with the keys of its round.
  mutating func exchange(_ draft: Draft, on line: Line) -> Reply {
    noted(draft.reply(heard(draft.message, on: line)))
  }

  /// Sends bytes in place of M2, and reads the answer.
  mutating func exchange(_ message: [UInt8], on line: Line) -> Reply {
    noted(Reply(heard(message, on: line)))
  }

  private mutating func heard(_ message: [UInt8], on line: Line) -> Heard {
    answered.insert(line.nonce)
    return line.exchange(message, by: answerDeadline)
  }

  private mutating func noted(_ reply: Reply) -> Reply {
    if reply == .silence { silenceCount += 1 }
    return reply
  }

  /// Runs an honest round on a new connection, by reference if the device remembers the token.
  mutating func honestRound(_ plaintext: [UInt8]? = nil) throws(AttackFault) -> Reply {
    try honestRound(on: try connect(), plaintext)
  }

  /// Runs an honest round on a connection.
  mutating func honestRound(on line: Line, _ plaintext: [UInt8]? = nil) throws(AttackFault) -> Reply {
    let plaintext = plaintext ?? request()
    let first = exchange(try draftByReference(on: line, request: plaintext), on: line)
    guard first == .verdict(.tokenUnknown, .absent) else { return first }
    try proceed(on: line)
    return exchange(try draft(on: line, request: plaintext), on: line)
  }

  /// Runs an honest round with the whole token on a connection, and waits for the challenge after it.
  ///
  /// - Returns: the details of the verdict; nil if it is not the acceptance that is due.
  mutating func acceptedRound(on line: Line) throws(AttackFault) -> Notice? {
    let (reply, notice) = try wholeRound(on: line)
    guard reply == .verdict(.accepted, .right) else { return nil }
    try proceed(on: line)
    return notice
  }

  /// Runs an honest round with the whole token on a connection.
  ///
  /// - Returns: the reply, and the details of the verdict if its seal opens.
  mutating func wholeRound(
    on line: Line, _ plaintext: [UInt8]? = nil
  ) throws(AttackFault) -> (reply: Reply, notice: Notice?) {
    let draft = try draft(on: line, request: plaintext ?? request())
    let heard = heard(draft.message, on: line)
    let reply = noted(draft.reply(heard))
    guard case .message(let bytes) = heard, let verdict = try? VerdictMessage(bytes.span) else { return (reply, nil) }
    return (reply, draft.open(verdict)?.notice)
  }

  /// Whether the device serves the honest prover, as it did at the beginning.
  mutating func isServed() -> (Bool, String) {
    do throws(AttackFault) {
      let reply = try honestRound()
      return (reply == .verdict(honestStatus, .right), reply.text)
    } catch { return (false, error.observation) }
  }

  /// Takes the status of an honest round, which later ones must have as well.
  package mutating func setHonest(_ status: Status) { honestStatus = status }
}

extension AttackFault {
  /// The text of the observation, for a person.
  var observation: String {
    switch self {
    case .unreachable: "the device could not be reached"
    case .noChallenge(let reply): "no challenge: \(reply.text)"
    case .anotherDevice: "the challenge of another device or key"
    case .notTried(let reason): reason
    case .cryptography: "this host's cryptography failed"
    }
  }
}
