extension ProverSession where Crypto: ~Copyable, Random: ~Copyable {
  /// Answers M1, whose bytes are `message`: leaves M2 in `outgoing`, or nothing when the device is not the expected one.
  mutating func answer(_ challenge: Challenge, _ message: Span<UInt8>) throws(ProverFault) {
    guard challenge.deviceID == identity.deviceID else { throw .anotherDevice }
    guard challenge.keyID == identity.keyID else { throw .anotherKey }
    required = challenge.required
    var head = MessageBuffer()
    let fresh: FixedBytes<16>
    do throws(RandomFailure) { fresh = try random.fixedBytes() } catch { throw .random }
    encodeHead(random: fresh, into: &head)
    do throws(CryptographyFailure) {
      let transcript = try Transcript(challenge: message, head: head.bytes, using: &cryptography)
      let keys = try SessionKeys(
        proofKey: identity.proofKey, device: identity.device, transcript: transcript, using: &cryptography)
      try encodeAnswer(head: head.bytes, transcript: transcript, keys: keys)
      pending = PendingRound(
        transcript: transcript, keys: keys, sentReference: sendsReference, sentIntegrity: sendsIntegrity)
    } catch { throw .cryptography }
  }

  private mutating func encodeHead(random: FixedBytes<16>, into head: inout MessageBuffer) {
    var reference: TokenReference?
    if sendsReference {
      do throws(CryptographyFailure) {
        reference = try tokenReference(token.bytes, using: &cryptography)
      } catch { sendsReference = false }
    }
    do throws(EncodingFault) {
      if let reference {
        try AnswerHead.encode(random: random, encoding: .reference, token: reference.bytes, into: &head)
      } else {
        try AnswerHead.encode(random: random, encoding: tokenEncoding, token: token.bytes, into: &head)
      }
    } catch { preconditionFailure() }
  }

  private mutating func encodeAnswer(
    head: Span<UInt8>, transcript: Transcript, keys: borrowing SessionKeys
  ) throws(CryptographyFailure) {
    let nonce = transcript.proofNonce
    let integrity: FixedBytes<32>? =
      sendsIntegrity
      ? try measurementProof(
        key: identity.proofKey, nonce: nonce, measurement: identity.integrity, using: &cryptography) : nil
    let device = try measurementProof(
      key: identity.proofKey, nonce: nonce, measurement: identity.device, using: &cryptography)
    var sealed = ByteBuffer<768>()
    do throws(EncodingFault) { try request.encode(into: &sealed) } catch { throw CryptographyFailure() }
    try sealed.seal(
      key: keys.proverToDevice, nonce: FixedBytes<12>().bytes, authenticating: transcript.hash.bytes,
      using: &cryptography)
    do throws(EncodingFault) {
      try Answer.encode(
        head: head, integrityProof: integrity, deviceProof: device, sealed: sealed.bytes, into: &outgoing)
    } catch { throw CryptographyFailure() }
  }
}

/// A round whose verdict is still to come.
struct PendingRound: ~Copyable {
  let transcript: Transcript
  let keys: SessionKeys
  let sentReference: Bool
  let sentIntegrity: Bool

  init(
    transcript: Transcript, keys: consuming SessionKeys, sentReference: Bool, sentIntegrity: Bool
  ) {
    self.transcript = transcript
    self.keys = keys
    self.sentReference = sentReference
    self.sentIntegrity = sentIntegrity
  }
}
