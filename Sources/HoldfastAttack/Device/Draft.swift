import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL

/// The secrets of a prover, or of one that the adversary invented.
final class Persona: Sendable {
  /// The measurement proof key (MPK).
  let proofKey: Secret<16>
  /// The integrity measurement (IM).
  let integrity: Secret<32>
  /// The device measurement (DM) of the prover's host.
  let device: Secret<32>

  init(proofKey: consuming Secret<16>, integrity: consuming Secret<32>, device: consuming Secret<32>) {
    self.proofKey = proofKey
    self.integrity = integrity
    self.device = device
  }

  /// Invents a prover.
  static func random(_ random: inout SystemRandom) throws(AttackFault) -> Persona {
    do throws(RandomFailure) {
      return Persona(proofKey: try random.secret(), integrity: try random.secret(), device: try random.secret())
    } catch { throw .cryptography }
  }
}

/// M2 as an honest prover makes it, each part of which can be changed before it is sent.
struct Draft {
  /// M1 that it answers.
  let challenge: [UInt8]
  /// The encoded head: the prover's random bytes, and the token or a reference.
  var head: [UInt8]
  var integrityProof: MAC?
  var deviceProof: MAC?
  /// The encrypted request and its tag.
  var sealed: [UInt8]
  private let transcript: Transcript
  private let keys: RoundKeys

  /// Makes an honest answer to `challenge`. `request` is the plaintext under the seal.
  init(
    answering challenge: [UInt8], as persona: Persona, _ encoding: TokenEncoding, _ token: [UInt8],
    request: [UInt8], random: inout SystemRandom
  ) throws(AttackFault) {
    let fresh: FixedBytes<16>
    do throws(RandomFailure) { fresh = try random.fixedBytes() } catch { throw .cryptography }
    var head: [UInt8] = []
    ProofMessageHead.encode(random: fresh, encoding: encoding, token: token.span, into: &head)
    var cryptography = OpenSSLCryptography()
    let transcript: Transcript
    let proofs: (integrity: MAC, device: MAC)
    let sealed: [UInt8]
    let keys: RoundKeys
    do throws(CryptographyFailure) {
      transcript = try Transcript(challenge: challenge.span, head: head.span, using: &cryptography)
      proofs = try Self.proofs(of: persona, for: transcript.proofNonce)
      keys = RoundKeys(
        try SessionKeys(
          proofKey: persona.proofKey, device: persona.device, transcript: transcript, using: &cryptography))
      sealed = try Self.seal(request, with: keys, transcript, isReflected: false)
    } catch { throw .cryptography }
    (self.challenge, self.head, self.transcript, self.keys) = (challenge, head, transcript, keys)
    (integrityProof, deviceProof, self.sealed) = (proofs.integrity, proofs.device, sealed)
  }

  /// Returns both proofs for a nonce.
  static func proofs(
    of persona: Persona, for nonce: Nonce
  ) throws(CryptographyFailure) -> (integrity: MAC, device: MAC) {
    var cryptography = OpenSSLCryptography()
    return (
      try measurementProof(
        key: persona.proofKey, nonce: nonce, measurement: persona.integrity, using: &cryptography),
      try measurementProof(key: persona.proofKey, nonce: nonce, measurement: persona.device, using: &cryptography)
    )
  }

  /// The nonce of the proofs, whose top bit is set.
  var proofNonce: Nonce { transcript.proofNonce }

  /// Seals a request for this round with the key of the other direction.
  func reflected(_ request: [UInt8]) throws(CryptographyFailure) -> [UInt8] {
    try Self.seal(request, with: keys, transcript, isReflected: true)
  }

  private static func seal(
    _ request: [UInt8], with keys: RoundKeys, _ transcript: Transcript, isReflected: Bool
  ) throws(CryptographyFailure) -> [UInt8] {
    var buffer = SealedReplyBuffer()
    do throws(EncodingFault) { try buffer.append(request.span) } catch { throw CryptographyFailure() }
    var cryptography = OpenSSLCryptography()
    let nonce = FixedBytes<12>()
    if isReflected {
      try buffer.seal(
        key: keys.keys.deviceToProver, nonce: nonce.bytes, authenticating: transcript.hash.bytes, using: &cryptography)
    } else {
      try buffer.seal(
        key: keys.keys.proverToDevice, nonce: nonce.bytes, authenticating: transcript.hash.bytes, using: &cryptography)
    }
    return [UInt8](buffer.bytes)
  }

  /// M2.
  var message: [UInt8] {
    var bytes: [UInt8] = []
    ProofMessage.encode(
      head: head.span, integrityProof: integrityProof, deviceProof: deviceProof, sealed: sealed.span, into: &bytes)
    return bytes
  }

  /// Reads what the device answered to this message, and opens its seal.
  func reply(_ heard: Heard) -> Reply {
    guard case .message(let bytes) = heard, let verdict = try? VerdictMessage(bytes.span), verdict.isSealed else {
      return Reply(heard)
    }
    guard let body = open(verdict) else { return .verdict(verdict.status, .wrong) }
    return .verdict(verdict.status, .right, isRepetition: body.notice.highestRequestNumber != nil)
  }

  /// Opens the reply under the seal of M3; nil if it does not open.
  func open(_ verdict: borrowing VerdictMessage) -> VerdictBody? {
    var plaintext = SealedReplyBuffer()
    var context = VerdictContext()
    var cryptography = OpenSSLCryptography()
    do {
      try plaintext.append(verdict.sealed)
      try context.append(transcript.hash.bytes)
      try context.append(verdict.status.rawValue)
      try plaintext.open(
        key: keys.keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: context.bytes,
        using: &cryptography)
      return try VerdictBody(plaintext.bytes)
    } catch { return nil }
  }
}

/// The keys of a round, in one place.
private final class RoundKeys: Sendable {
  let keys: SessionKeys

  init(_ keys: consuming SessionKeys) { self.keys = keys }
}

extension [UInt8] {
  /// Returns the bytes with one bit of the byte at `index` flipped.
  func flipped(at index: Int) -> [UInt8] {
    var changed = self
    changed[index] ^= 1
    return changed
  }
}
