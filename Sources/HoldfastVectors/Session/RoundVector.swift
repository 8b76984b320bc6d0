import HoldfastCore
import HoldfastOpenSSL
import HoldfastReplay

/// The vectors `SessionRound`: a complete round with every value that either side computes. In an invalid test, a value is not what
/// follows from the others, or one of the messages is to be refused.
///
/// Source: docs/protocol.md, Session. Each value is recomputed. The prover's session then takes part in the round, and
/// so does the device's session if the vector does not depend on the device's state.
struct RoundVectors: ReplayableGroup {
  private let parties: Parties

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    parties = try Parties(group)
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let vector = try RoundVector(test.node)
    do throws(Refusal) {
      let token = try vector.openToken(for: parties)
      try vector.checkChallenge(for: parties)
      try vector.checkMessages()
      try vector.checkProverSession(for: parties)
      try vector.checkDeviceSession(for: parties, token: token)
      return .accepted
    } catch { return .refused(error.reason) }
  }
}

/// A parsed test of `SessionRound`.
struct RoundVector {
  let m1: [UInt8]
  let proverRandom: FixedBytes<16>
  let encoding: TokenEncoding
  /// The token as it is in the head: complete, or a reference.
  let token: [UInt8]
  /// The complete token.
  let wholeToken: [UInt8]
  let proofKey: FixedBytes<16>
  let integrity: FixedBytes<32>
  let device: FixedBytes<32>
  let head: [UInt8]
  let transcriptHash: Digest
  let nonce: Nonce
  let proverToDevice: FixedBytes<32>
  let deviceToProver: FixedBytes<32>
  let integrityProof: MAC?
  let deviceProof: MAC
  let request: [UInt8]
  let m2: [UInt8]
  /// The plaintext of M3's sealed part; nil if M3 has none.
  let reply: [UInt8]?
  let m3: [UInt8]
  let status: UInt64

  init(_ node: VectorNode) throws(VectorFault) {
    m1 = try node.member("m1").bytes()
    proverRandom = try node.member("proverRandom").fixed()
    let number = try node.member("encoding")
    guard let raw = UInt8(exactly: try number.number()), let encoding = TokenEncoding(rawValue: raw) else {
      throw number.fault(.wrongValue)
    }
    self.encoding = encoding
    token = try node.member("token").bytes()
    wholeToken = encoding == .reference ? try node.member("rememberedToken").bytes() : token
    proofKey = try node.member("mpk").fixed()
    integrity = try node.member("integrity").fixed()
    device = try node.member("device").fixed()
    head = try node.member("head").bytes()
    transcriptHash = try node.member("th").fixed()
    nonce = try node.member("nonce").fixed()
    proverToDevice = try node.member("kProverToDevice").fixed()
    deviceToProver = try node.member("kDeviceToProver").fixed()
    let integrityProof = try node.member("imp")
    self.integrityProof = integrityProof.isNull ? nil : try integrityProof.fixed()
    deviceProof = try node.member("dmp").fixed()
    request = try node.member("request").bytes()
    m2 = try node.member("m2").bytes()
    let reply = try node.member("m3Plaintext")
    self.reply = reply.isNull ? nil : try reply.bytes()
    m3 = try node.member("m3").bytes()
    status = try node.member("status").number()
  }

  /// The encoding of the complete token. A COSE token begins with its tag, a JOSE token with the base64url encoding of
  /// a brace.
  var wholeTokenEncoding: TokenEncoding {
    encoding == .reference ? (wholeToken.first == 0xd8 ? .cose : .jose) : encoding
  }

  /// Opens the token, and checks that its claims are those in the vector and that a reference matches the token.
  func openToken(for parties: Parties) throws(Refusal) -> AuthenticatedToken {
    let verified = try parties.open(wholeToken, encoding: wholeTokenEncoding)
    guard publicBytes(verified.claims.proofKey) == proofKey else { throw Refusal(reason: "mpk differs") }
    guard publicBytes(verified.claims.integrity) == integrity else { throw Refusal(reason: "integrity differs") }
    guard publicBytes(verified.claims.device) == device else { throw Refusal(reason: "device differs") }
    if encoding == .reference {
      var cryptography = OpenSSLCryptography()
      let reference: TokenReference
      do throws(CryptographyFailure) {
        reference = try tokenReference(wholeToken.span, using: &cryptography)
      } catch { throw Refusal(reason: "no reference") }
      try Refusal.unless(array(reference.bytes), token, "reference")
    }
    return verified
  }

  /// Reads M1 and checks that it comes from this device.
  func checkChallenge(for parties: Parties) throws(Refusal) {
    var buffer = MessageBuffer()
    do throws(EncodingFault) {
      let challenge = try Challenge(m1.span)
      guard challenge.deviceID == parties.deviceID, challenge.keyID == parties.deviceKeyID else {
        throw .unexpected
      }
      try challenge.encode(into: &buffer)
    } catch { throw Refusal(reason: "m1: \(error)") }
    try Refusal.unless(array(buffer.bytes), m1, "m1, written again,")
  }
}

extension RoundVector {
  /// Answers M2 with the device's session, under a policy and a store that permit everything.
  ///
  /// This applies only to an accepted round whose reply holds only a result. Other statuses, and notices next to a
  /// result, depend on state that the vector does not describe. For the same reason, a refusal by a rule instead of a
  /// key does not fail the test.
  func checkDeviceSession(for parties: Parties, token: borrowing AuthenticatedToken) throws(Refusal) {
    guard status == Status.accepted.rawValue, let reply, let result = Self.bareResult(reply) else { return }
    var device = try makeDevice(for: parties, token: token)
    let status: Status
    do throws(EncodingFault) {
      status = try device.answer(m2.span, to: m1.span, result: result.span)
    } catch { throw Refusal(reason: "device: \(error)") }
    if status == .accepted {
      try Refusal.unless(array(device.verdict), m3, "device's m3")
    } else if !status.row.isByRule {
      throw Refusal(reason: "device: \(status)")
    }
  }

  /// Returns the result in a reply that holds nothing else.
  private static func bareResult(_ reply: [UInt8]) -> [UInt8]? {
    do throws(EncodingFault) {
      let reply = try VerdictBody(reply.span)
      return reply.notice == Notice() ? array(reply.result.bytes) : nil
    } catch { return nil }
  }

  private func makeDevice(
    for parties: Parties, token: borrowing AuthenticatedToken
  ) throws(Refusal) -> VectorDevice<OpenSSLCryptography, P256PrivateKey> {
    var cryptography = OpenSSLCryptography()
    let reference: TokenReference
    do throws(CryptographyFailure) {
      reference = try tokenReference(wholeToken.span, using: &cryptography)
    } catch { throw Refusal(reason: "no reference") }
    let key: P256PrivateKey
    do throws(CryptographyFailure) { key = try parties.deviceKey() } catch { throw Refusal(reason: "no device key") }
    var device = VectorDevice(
      deviceID: parties.deviceID, keyID: parties.deviceKeyID, key: key, issuers: parties.trust,
      cryptography: cryptography)
    device.remember(token, as: reference)
    return device
  }

  /// Answers M1 and reads M3 with the prover's session and the vector's random bytes.
  ///
  /// It is skipped if the vector sends no integrity proof, which a session omits only in a second round.
  func checkProverSession(for parties: Parties) throws(Refusal) {
    guard integrityProof != nil else { return }
    var prover = try makeProver(for: parties)
    do throws(ProverFault) {
      guard case .send = try prover.receive(m1.span) else { throw ProverFault.malformed }
    } catch { throw Refusal(reason: "prover, given m1: \(error)") }
    try Refusal.unless(array(prover.outgoing.bytes), m2, "prover's m2")
    let step: ProverStep
    do throws(ProverFault) {
      step = try prover.receive(m3.span)
    } catch { throw Refusal(reason: "prover, given m3: \(error)") }
    if case .done(let verdict) = step {
      guard UInt64(verdict.status.rawValue) == status else { throw Refusal(reason: "prover's status differs") }
      guard verdict.isAuthenticated == (reply != nil) else {
        throw Refusal(reason: "prover's trust in m3 differs")
      }
    }
    guard let reply else { return }
    var written = MessageBuffer()
    do throws(EncodingFault) { try prover.reply.encode(into: &written) } catch {
      throw Refusal(reason: "prover's reply: \(error)")
    }
    try Refusal.unless(array(written.bytes), reply, "prover's reply")
  }

  private func makeProver(
    for parties: Parties
  ) throws(Refusal) -> ProverSession<OpenSSLCryptography, GivenRandom> {
    do throws(EncodingFault) {
      return try ProverSession(
        identity: ProverSession.Identity(
          deviceID: parties.deviceID, keyID: parties.deviceKeyID, proofKey: secret(proofKey),
          integrity: secret(integrity), device: secret(device)),
        request: try Request(request.span), token: wholeToken.span, encoding: wholeTokenEncoding,
        isRemembered: encoding == .reference, cryptography: OpenSSLCryptography(),
        random: GivenRandom(bytes: proverRandom))
    } catch { throw Refusal(reason: "prover: \(error)") }
  }
}

/// A random source that always returns the random bytes of a vector.
struct GivenRandom: RandomSource {
  let bytes: FixedBytes<16>

  func fill(_ output: inout MutableSpan<UInt8>) {
    for index in output.indices { output[index] = bytes[index % 16] }
  }
}
