import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// A token, and the secrets in it with which a prover proves.
struct TokenCarrier {
  fileprivate let token: [UInt8]
  fileprivate let encoding: TokenEncoding
  fileprivate let proofKey: FixedBytes<16>
  fileprivate let integrity, device: FixedBytes<32>
  /// Whether the secrets are those of the token; otherwise they are zeros.
  let isWhole: Bool

  /// Takes the whole token of a round.
  init(_ round: RoundVector) {
    (token, encoding) = (round.wholeToken, round.wholeTokenEncoding)
    (proofKey, integrity, device, isWhole) = (round.proofKey, round.integrity, round.device, true)
  }

  /// Takes a token under test, and its claims if it is valid.
  init(_ token: [UInt8], _ encoding: TokenEncoding, claims: VectorNode?) throws(VectorFault) {
    (self.token, self.encoding, isWhole) = (token, encoding, claims != nil)
    proofKey = try claims?.member("proofKey").fixed() ?? FixedBytes()
    integrity = try claims?.member("integrity").fixed() ?? FixedBytes()
    device = try claims?.member("device").fixed() ?? FixedBytes()
  }
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
  init(_ carrier: TokenCarrier, request: [UInt8], m1: [UInt8]) throws(Refusal) {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    var head = MessageBuffer()
    var sealed = MessageBuffer()
    do throws(RandomFailure) {
      let fresh: FixedBytes<16> = try random.fixedBytes()
      do throws(EncodingFault) {
        try ProofMessageHead.encode(
          random: fresh, encoding: carrier.encoding, token: carrier.token.span, into: &head)
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
        proofKey: secret(carrier.proofKey), device: secret(carrier.device), transcript: transcript,
        using: &cryptography)
    } catch { throw Refusal(reason: "no keys") }
    do throws(CryptographyFailure) {
      let key = secret(carrier.proofKey)
      let nonce = transcript.proofNonce
      proofs.integrity = try measurementProof(
        key: key, nonce: nonce, measurement: secret(carrier.integrity), using: &cryptography)
      proofs.device = try measurementProof(
        key: key, nonce: nonce, measurement: secret(carrier.device), using: &cryptography)
      try sealed.seal(
        key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
        using: &cryptography)
    } catch { throw Refusal(reason: "no proofs") }
    var message: [UInt8] = []
    ProofMessage.encode(
      head: head.bytes, integrityProof: proofs.integrity, deviceProof: proofs.device, sealed: sealed.bytes,
      into: &message)
    m2 = message
    self.transcript = transcript
    self.keys = keys
  }

  /// Whether M3 has a sealed part that opens, which only a device can make that has opened the token.
  func opens(_ m3: [UInt8]) -> Bool {
    var cryptography = OpenSSLCryptography()
    var plaintext = MessageBuffer()
    var authenticated = VerdictContext()
    do throws(EncodingFault) {
      let verdict = try VerdictMessage(m3.span)
      guard verdict.isSealed else { return false }
      try plaintext.append(verdict.sealed)
      try authenticated.append(transcript.hash.bytes)
      try authenticated.append(verdict.status.rawValue)
    } catch { return false }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: authenticated.bytes,
        using: &cryptography)
      return true
    } catch { return false }
  }
}
