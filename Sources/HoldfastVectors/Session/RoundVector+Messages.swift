import HoldfastCore
import HoldfastOpenSSL

extension RoundVector {
  /// Recomputes every value from the head of M2 to the sealed part of M3.
  func checkMessages() throws(Refusal) {
    try checkHead()
    let transcript = try recomputedTranscript()
    let keys = try recomputedKeys(transcript)
    try checkProofs(transcript)
    try checkAnswer(keys, transcript)
    try checkVerdict(keys, transcript)
  }

  private func recomputedTranscript() throws(Refusal) -> Transcript {
    var cryptography = OpenSSLCryptography()
    let transcript: Transcript
    do throws(CryptographyFailure) {
      transcript = try Transcript(challenge: m1.span, head: head.span, using: &cryptography)
    } catch { throw Refusal(reason: "no transcript") }
    guard transcript.hash == transcriptHash else { throw Refusal(reason: "th differs") }
    guard transcript.proofNonce == nonce else { throw Refusal(reason: "nonce differs") }
    return transcript
  }

  private func recomputedKeys(_ transcript: Transcript) throws(Refusal) -> SessionKeys {
    var cryptography = OpenSSLCryptography()
    let keys: SessionKeys
    do throws(CryptographyFailure) {
      keys = try SessionKeys(
        proofKey: secret(proofKey), device: secret(device), transcript: transcript, using: &cryptography)
    } catch { throw Refusal(reason: "no keys") }
    guard publicBytes(keys.proverToDevice) == proverToDevice else { throw Refusal(reason: "kProverToDevice differs") }
    guard publicBytes(keys.deviceToProver) == deviceToProver else { throw Refusal(reason: "kDeviceToProver differs") }
    return keys
  }

  private func checkProofs(_ transcript: Transcript) throws(Refusal) {
    var cryptography = OpenSSLCryptography()
    let key = secret(proofKey)
    let proofs: (integrity: MAC, device: MAC)
    do throws(CryptographyFailure) {
      proofs.integrity = try measurementProof(
        key: key, nonce: transcript.proofNonce, measurement: secret(integrity), using: &cryptography)
      proofs.device = try measurementProof(
        key: key, nonce: transcript.proofNonce, measurement: secret(device), using: &cryptography)
    } catch { throw Refusal(reason: "no proofs") }
    if let integrityProof, integrityProof != proofs.integrity { throw Refusal(reason: "imp differs") }
    guard deviceProof == proofs.device else { throw Refusal(reason: "dmp differs") }
  }

  private func checkHead() throws(Refusal) {
    var buffer = MessageBuffer()
    do throws(EncodingFault) {
      try ProofMessageHead.encode(random: proverRandom, encoding: encoding, token: token.span, into: &buffer)
    } catch { throw Refusal(reason: "head: \(error)") }
    try Refusal.unless(array(buffer.bytes), head, "head")
  }

  /// Reads M2, opens its sealed part, and encodes both again.
  private func checkAnswer(_ keys: borrowing SessionKeys, _ transcript: Transcript) throws(Refusal) {
    var plaintext = MessageBuffer()
    var written = MessageBuffer()
    do throws(EncodingFault) {
      let answer = try ProofMessage(m2.span)
      guard case .session(_, let sealed) = answer.form else { throw .unexpected }
      try plaintext.append(sealed)
    } catch { throw Refusal(reason: "m2: \(error)") }
    try open(&plaintext, key: keys.proverToDevice, authenticating: transcript.hash.bytes, "m2")
    try Refusal.unless(array(plaintext.bytes), request, "request")
    do throws(EncodingFault) {
      try Request(request.span).encode(into: &written)
    } catch { throw Refusal(reason: "request: \(error)") }
    try Refusal.unless(array(written.bytes), request, "request, written again,")
    try seal(&written, key: keys.proverToDevice, authenticating: transcript.hash.bytes, "m2")
    var message = MessageBuffer()
    do throws(EncodingFault) {
      try ProofMessage.encode(
        head: head.span, integrityProof: integrityProof, deviceProof: deviceProof, sealed: written.bytes,
        into: &message)
    } catch { throw Refusal(reason: "m2: \(error)") }
    try Refusal.unless(array(message.bytes), m2, "m2")
  }

  /// Reads M3, opens its sealed part if there is one, and encodes both again.
  private func checkVerdict(_ keys: borrowing SessionKeys, _ transcript: Transcript) throws(Refusal) {
    var message = MessageBuffer()
    do throws(EncodingFault) {
      let verdict = try VerdictMessage(m3.span)
      guard UInt64(verdict.status.rawValue) == status, verdict.isSealed == (reply != nil) else { throw .unexpected }
      if !verdict.isSealed { try VerdictMessage.encode(unsealed: verdict.status, into: &message) }
    } catch { throw Refusal(reason: "m3: \(error)") }
    if let reply {
      var authenticated = array(transcript.hash.bytes)
      authenticated.append(UInt8(status))
      var written = MessageBuffer()
      do throws(EncodingFault) {
        try VerdictBody(reply.span).encode(into: &written)
      } catch { throw Refusal(reason: "m3Plaintext: \(error)") }
      try Refusal.unless(array(written.bytes), reply, "m3Plaintext, written again,")
      try seal(&written, key: keys.deviceToProver, authenticating: authenticated.span, "m3")
      do throws(EncodingFault) {
        guard let status = Status(rawValue: UInt8(status)) else { throw .unexpected }
        try VerdictMessage.encode(status, sealed: written.bytes, into: &message)
      } catch { throw Refusal(reason: "m3: \(error)") }
    }
    try Refusal.unless(array(message.bytes), m3, "m3")
  }

  private func seal(
    _ buffer: inout MessageBuffer, key: borrowing Secret<32>, authenticating data: Span<UInt8>, _ name: String
  ) throws(Refusal) {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      try buffer.seal(key: key, nonce: FixedBytes<12>().bytes, authenticating: data, using: &cryptography)
    } catch { throw Refusal(reason: "\(name): its sealed part cannot be made") }
  }

  private func open(
    _ buffer: inout MessageBuffer, key: borrowing Secret<32>, authenticating data: Span<UInt8>, _ name: String
  ) throws(Refusal) {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      try buffer.open(key: key, nonce: FixedBytes<12>().bytes, authenticating: data, using: &cryptography)
    } catch { throw Refusal(reason: "\(name): its sealed part does not open") }
  }
}
