import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// A token, and the secrets in it with which a prover proves.
struct TokenCarrier {
  fileprivate let token: [UInt8]
  fileprivate let encoding: TokenEncoding
  fileprivate let secrets: TargetSecrets
  /// Whether the secrets are those of the token; otherwise they are zeros.
  let isWhole: Bool

  /// Takes a token and its secrets.
  init(_ token: [UInt8], _ encoding: TokenEncoding, _ secrets: TargetSecrets) {
    (self.token, self.encoding, self.secrets, isWhole) = (token, encoding, secrets, true)
  }

  /// Takes the whole token of a round.
  init(_ round: RoundVector) {
    self.init(round.wholeToken, round.wholeTokenEncoding, round.secrets)
  }

  /// Takes a token under test, and its claims if it is valid.
  init(_ token: [UInt8], _ encoding: TokenEncoding, claims: VectorNode?) throws(VectorFault) {
    (self.token, self.encoding, isWhole) = (token, encoding, claims != nil)
    secrets = TargetSecrets(
      proofKey: try claims?.member("proofKey").fixed() ?? FixedBytes(),
      integrity: try claims?.member("integrity").fixed() ?? FixedBytes(),
      device: try claims?.member("device").fixed() ?? FixedBytes())
  }
}

extension RoundVector {
  /// The secrets of the token.
  var secrets: TargetSecrets { TargetSecrets(proofKey: proofKey, integrity: integrity, device: device) }
}

/// A round of a test with a challenge of a device under test.
///
/// Source: docs/protocol.md, Session.
struct TargetRound: ~Copyable {
  /// The message to the device.
  let m2: [UInt8]
  private let transcript: Transcript
  private let keys: SessionKeys

  /// Makes M2. The request need not be well-formed.
  ///
  /// - Parameters:
  ///   - random: the prover's random bytes; nil for fresh ones.
  ///   - change: what is to be wrong in M2.
  init(
    _ carrier: TokenCarrier, request: [UInt8], m1: [UInt8], random given: FixedBytes<16>? = nil,
    change: RoundChange = RoundChange()
  ) throws(Refusal) {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    var head = MessageBuffer()
    var sentHead = MessageBuffer()
    var sealed = MessageBuffer()
    do throws(RandomFailure) {
      var fresh = FixedBytes<16>()
      if let given { fresh = given } else { fresh = try random.fixedBytes() }
      do throws(EncodingFault) {
        try ProofMessageHead.encode(
          random: fresh, encoding: carrier.encoding, token: carrier.token.span, into: &head)
        if change.head { fresh[0] ^= 1 }
        try ProofMessageHead.encode(
          random: fresh, encoding: carrier.encoding, token: carrier.token.span, into: &sentHead)
        try sealed.append(request.span)
      } catch { throw RandomFailure() }
    } catch { throw Refusal(reason: "no head") }
    let proofs: (integrity: MAC, device: MAC)
    let transcript: Transcript
    let keys: SessionKeys
    do throws(CryptographyFailure) {
      transcript = try Transcript(challenge: m1.span, head: head.bytes, using: &cryptography)
    } catch { throw Refusal(reason: "no transcript") }
    do throws(CryptographyFailure) {
      keys = try SessionKeys(
        proofKey: secret(carrier.secrets.proofKey), device: secret(carrier.secrets.device), transcript: transcript,
        using: &cryptography)
    } catch { throw Refusal(reason: "no keys") }
    do throws(CryptographyFailure) {
      let key = secret(carrier.secrets.proofKey)
      let nonce = transcript.proofNonce
      proofs.integrity = try measurementProof(
        key: key, nonce: nonce, measurement: secret(carrier.secrets.integrity), using: &cryptography)
      proofs.device = try measurementProof(
        key: key, nonce: nonce, measurement: secret(carrier.secrets.device), using: &cryptography)
      try sealed.seal(
        key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
        using: &cryptography)
    } catch { throw Refusal(reason: "no proofs") }
    var message: [UInt8] = []
    ProofMessage.encode(
      head: sentHead.bytes, integrityProof: change.integrityProof.of(proofs.integrity),
      deviceProof: change.deviceProof.of(proofs.device), sealed: change.sealed.of(array(sealed.bytes)).span,
      into: &message)
    m2 = message
    self.transcript = transcript
    self.keys = keys
  }

  /// Opens the sealed part of M3, which only a device can make that has opened the token. Returns the optional parts of the reply;
  /// nil if there is no sealed part, it does not open, or it holds no reply.
  func notice(in m3: [UInt8]) -> Notice? {
    var cryptography = OpenSSLCryptography()
    var plaintext = MessageBuffer()
    var authenticated = VerdictContext()
    do throws(EncodingFault) {
      let verdict = try VerdictMessage(m3.span)
      guard verdict.isSealed else { return nil }
      try plaintext.append(verdict.sealed)
      try authenticated.append(transcript.hash.bytes)
      try authenticated.append(verdict.status.rawValue)
    } catch { return nil }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: authenticated.bytes,
        using: &cryptography)
    } catch { return nil }
    do throws(EncodingFault) { return try VerdictBody(plaintext.bytes).notice } catch { return nil }
  }
}
