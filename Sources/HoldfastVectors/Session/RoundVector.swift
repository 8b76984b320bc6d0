import HoldfastCore
import HoldfastOpenSSL

/// A test of `SessionRound`, read.
struct RoundVector {
  let m1: [UInt8]
  let proverRandom: FixedBytes<16>
  let encoding: TokenEncoding
  /// As it stands in the head: whole, or the reference.
  let token: [UInt8]
  /// The whole token.
  let wholeToken: [UInt8]
  let proofKey: FixedBytes<16>
  let integrity: FixedBytes<32>
  let device: FixedBytes<32>
  let head: [UInt8]
  let transcriptHash: Digest
  let nonce: FixedBytes<16>
  let proverToDevice: FixedBytes<32>
  let deviceToProver: FixedBytes<32>
  let integrityProof: FixedBytes<32>?
  let deviceProof: FixedBytes<32>
  let request: [UInt8]
  let m2: [UInt8]
  /// What M3 holds under its seal; nil where it has none.
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

  /// How the whole token is written: a COSE token begins with its tag, a JOSE token with the base64url of a brace.
  var wholeTokenEncoding: TokenEncoding {
    encoding == .reference ? (wholeToken.first == 0xd8 ? .cose : .jose) : encoding
  }

  /// Opens the token and checks that it says what the vector says, and that a reference is the token's.
  func openToken(for parties: Parties) throws(Refusal) -> VerifiedToken {
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

  /// Reads M1 and checks that it is this device's.
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
