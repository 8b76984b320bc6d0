import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import HoldfastStorage
import HoldfastTransport

/// An attacker that speaks the protocol directly and has the genuine app's measurements: the strongest position without
/// the device's key.
struct Attacker {
  let enrolment: Enrolment
  let endpoint: Endpoint

  typealias Session = ProverSession<OpenSSLCryptography, SystemRandom>

  /// A connection to the device.
  final class Line {
    private let connection: Connection
    private let endpoint: Endpoint

    init(_ endpoint: Endpoint) throws(Failure) {
      self.endpoint = endpoint
      do throws(TransportError) {
        connection = try Connection.connect(to: endpoint, timeoutMilliseconds: 5000)
      } catch { throw Failure(error, endpoint: endpoint) }
    }

    func receive() throws(Failure) -> [UInt8] {
      var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
      do throws(TransportError) {
        var span = buffer.mutableSpan
        let count = try connection.receive(into: &span, firstByteWithin: 5000, wholeWithin: 5000)
        return Array(buffer[..<count])
      } catch { throw Failure(error, endpoint: endpoint) }
    }

    func send(_ message: [UInt8]) throws(Failure) {
      do throws(TransportError) { try connection.send(message.span, timeoutMilliseconds: 5000) } catch {
        throw Failure(error, endpoint: endpoint)
      }
    }

    /// Sends a proof message and returns the status of the answer.
    func exchange(_ message: [UInt8]) throws(Failure) -> Status {
      try send(message)
      let reply = try receive()
      do throws(EncodingFault) { return try VerdictMessage(reply.span).status } catch {
        throw Failure(.malformed, "the device answered with something else than a verdict")
      }
    }
  }

  /// Makes a genuine proof message for `challenge`.
  func answer(to challenge: [UInt8], token: [UInt8]? = nil) throws(Failure) -> [UInt8] {
    var session = try session(token: token ?? enrolment.token)
    do throws(ProverFault) { _ = try session.receive(challenge.span) } catch {
      throw Failure(.malformed, "the challenge is not the device's")
    }
    return Array(session.outgoing.bytes)
  }

  /// Puts the proofs of a genuine message and their nonce into a message for a compatibility round.
  func compatibilityAnswer(from answer: [UInt8], to challenge: [UInt8]) throws(Failure) -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    do throws(EncodingFault) {
      let genuine = try ProofMessage(answer.span)
      guard case .session(let head, _) = genuine.form, let integrity = genuine.integrityProof,
        let device = genuine.deviceProof
      else { throw .unexpected }
      let nonce: FixedBytes<16>
      do throws(CryptographyFailure) {
        nonce = try Transcript(challenge: challenge.span, head: head, using: &cryptography).proofNonce
      } catch { throw .unexpected }
      var message: [UInt8] = []
      message.appendCBOR(array: 7)
      message.appendCBOR(unsigned: Message.compatibilityType)
      message.appendCBOR(bytes: nonce.bytes)
      message.appendCBOR(unsigned: UInt64(genuine.encoding.rawValue))
      message.appendCBOR(bytes: genuine.token)
      message.appendCBOR(bytes: integrity.bytes)
      message.appendCBOR(bytes: device.bytes)
      message.appendCBOR(text: "unlock")
      return message
    } catch { throw Failure(.fault, "there is no answer to move") }
  }

  /// Makes the proof message of an attacker that knows only a reference to the token.
  func forgedAnswer() throws(Failure) -> [UInt8] {
    var random = SystemRandom()
    var cryptography = OpenSSLCryptography()
    let (nonce, proof): (FixedBytes<16>, FixedBytes<32>)
    do throws(RandomFailure) { (nonce, proof) = (try random.fixedBytes(), try random.fixedBytes()) } catch {
      throw Failure(.fault, "no randomness")
    }
    var (head, message): ([UInt8], [UInt8]) = ([], [])
    do throws(CryptographyFailure) {
      let reference = try tokenReference(enrolment.token.span, using: &cryptography)
      ProofMessageHead.encode(random: nonce, encoding: .reference, token: reference.bytes, into: &head)
    } catch { throw Failure(.fault, "the cryptographic library failed") }
    ProofMessage.encode(
      head: head.span, integrityProof: proof, deviceProof: proof, sealed: enrolment.token.span.extracting(first: 64),
      into: &message)
    return message
  }

  /// Returns the token with y replaced by p - y in its ephemeral key. Only x enters the shared secret, so the token
  /// still opens.
  func twinOfToken() throws(Failure) -> [UInt8] {
    // A COSE token ends in `-3: y`, the last of the recipient's headers, and an empty ciphertext.
    let end = enrolment.token.count - 1
    let y = enrolment.token[(end - 32)..<end]
    guard enrolment.encoding == .cose, enrolment.token[(end - 35)..<(end - 32)].elementsEqual([0x22, 0x58, 0x20]) else {
      throw Failure(.fault, "there is no ephemeral key where it should be")
    }
    var (twin, borrow) = (enrolment.token, 0)
    for (index, (ofPrime, ofY)) in zip(end - 32..<end, zip(Self.prime, y)).reversed() {
      let difference = Int(ofPrime) - Int(ofY) - borrow
      borrow = difference < 0 ? 1 : 0
      twin[index] = UInt8(truncatingIfNeeded: difference)
    }
    return twin
  }

  /// The prime of P-256, big-endian. Source: SEC 2 §2.4.2.
  private static let prime: [UInt8] =
    [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1] + Array(repeating: 0, count: 12) + Array(repeating: 0xff, count: 12)

  /// Returns the status that the device gives a token with correct proofs.
  func status(ofToken token: [UInt8]) throws(Failure) -> Status {
    let line = try Line(endpoint)
    return try line.exchange(try answer(to: try line.receive(), token: token))
  }

  /// Makes a token with this app's own measurements without the issuer.
  func forgeToken(
    format: MeasurementTokenFormat, issuer: inout IssuerSecrets, issuedAt: UInt64, expires: UInt64
  ) throws(Failure) -> [UInt8] {
    let measurements = try measure()
    var random = SystemRandom()
    var cryptography = OpenSSLCryptography()
    let tokenID: TokenID
    do throws(RandomFailure) { tokenID = try random.fixedBytes() } catch { throw Failure(.fault, "no randomness") }
    let claims = MeasurementClaims(
      issuer: BoundedText("mallory.example"), subject: BoundedText("holdfast"),
      audience: enrolment.descriptor.deviceID, expires: expires, issuedAt: issuedAt, tokenID: tokenID,
      integrity: measurements.integrity.copy(), device: measurements.device.copy(), proofKey: measurements.key.copy(),
      generation: 1, maximumUses: nil, commands: nil, version: .zero, user: nil)
    do throws(TokenWritingFault) {
      return try MeasurementTokenWriter(format: format).write(
        claims, to: enrolment.descriptor.publicKey.point, issuer: &issuer, random: &random, using: &cryptography)
    } catch { throw Failure(.fault, "the token could not be written") }
  }

  private func session(token: [UInt8]) throws(Failure) -> Session {
    let measurements = try measure()
    do throws(EncodingFault) {
      return try Session(
        identity: measurements.identity(for: enrolment.descriptor),
        request: Request(command: BoundedText("unlock" as StaticString)), token: token.span,
        encoding: enrolment.encoding, isRemembered: false, cryptography: OpenSSLCryptography(), random: SystemRandom())
    } catch { throw Failure(.malformed, "the token is too long") }
  }

  private func measure() throws(Failure) -> ProvableMeasurements {
    do throws(MeasurementError) {
      var measurer = Measurer()
      return try measurer.provableMeasurements(for: try enrolment.decodedConfiguration())
    } catch { throw Failure(error) }
  }
}

/// A device that impersonates another one: it has the other's id and public key but not its private key.
struct ImpostorDevice: Sendable {
  let descriptor: DeviceDescriptor
  /// The answer to every message.
  let verdict: [UInt8]

  /// Makes M3 with a status that the impostor cannot seal.
  static func verdict(_ status: Status) -> [UInt8] {
    var verdict: [UInt8] = []
    VerdictMessage.encode(unsealed: status, into: &verdict)
    return verdict
  }

  /// Answers one prover on a separate thread.
  func answerOnce(at endpoint: Endpoint) throws(Failure) {
    let listener: Listener
    do throws(TransportError) { listener = try Listener(endpoint) } catch { throw Failure(error, endpoint: endpoint) }
    let challenge = try challenge()
    Thread.detach { [verdict] in
      defer { listener.close() }
      guard let connection = try? listener.accept() else { return }
      var buffer = [UInt8](repeating: 0, count: Connection.maximumMessageByteCount)
      var span = buffer.mutableSpan
      try? connection.send(challenge.span, timeoutMilliseconds: 5000)
      _ = try? connection.receive(into: &span, firstByteWithin: 5000, wholeWithin: 5000)
      try? connection.send(verdict.span, timeoutMilliseconds: 5000)
    }
  }

  private func challenge() throws(Failure) -> [UInt8] {
    var random = SystemRandom()
    let nonce: FixedBytes<16>
    do throws(RandomFailure) { nonce = try random.fixedBytes() } catch { throw Failure(.fault, "no randomness") }
    var challenge: [UInt8] = []
    Challenge(
      deviceID: descriptor.deviceID, nonce: nonce, keyID: descriptor.keyID, required: .device,
      clock: SystemClock().unixSeconds()
    ).encode(into: &challenge)
    return challenge
  }
}

extension Demonstration {
  /// Attacks the prover with a device that is not the enrolled one.
  mutating func attackWithAnImpostor(_ attacker: Attacker) throws(Failure) {
    try meet("an impostor device that says accepted", ImpostorDevice.verdict(.accepted), of: attacker.enrolment)
    let line = try Attacker.Line(attacker.endpoint)
    try line.send(try attacker.answer(to: try line.receive()))
    try meet("… and one that replays a genuine acceptance", try line.receive(), of: attacker.enrolment)
    let before = try stateOfProver()
    try meet("… and one that says the token has expired", ImpostorDevice.verdict(.tokenExpired), of: attacker.enrolment)
    story.expect(
      "what none of them changed is the prover's state", "the same",
      try stateOfProver() == before ? "the same" : "changed")
  }

  /// Connects the prover to an impostor that answers with `verdict`.
  private mutating func meet(_ text: String, _ verdict: [UInt8], of enrolment: Enrolment) throws(Failure) {
    let endpoint = try Endpoint(argument: "unix:\(playground.path("impostor.sock"))")
    try ImpostorDevice(descriptor: enrolment.descriptor, verdict: verdict).answerOnce(at: endpoint)
    let ending = try runProver(at: endpoint)
    story.expect(text, "exit 3", ending.status.map { "exit \($0)" } ?? "killed")
  }

  /// Returns the files of the prover's state folder, one after the other, without the number of the last request, which
  /// the prover itself changed.
  private func stateOfProver() throws(Failure) -> String {
    try ChildProcess.run([
      "/bin/sh", "-c",
      "cd \"$0\" && find . -type f ! -name \(RequestNumbers.fileName) -printf '%p %m\\n' -exec cksum {} + | sort",
      playground.path("prover"),
    ])
    .output
  }
}
