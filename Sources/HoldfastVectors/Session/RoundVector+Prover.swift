import HoldfastCore
import HoldfastOpenSSL

extension RoundVector {
  /// Lets the prover's session, with the vector's random bytes, answer M1 and read M3.
  ///
  /// Left out where the vector sends no integrity proof: a session leaves it out only in a second round.
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

/// The random bytes of a vector, whenever some are asked for.
struct GivenRandom: RandomSource {
  let bytes: FixedBytes<16>

  func fill(_ output: inout MutableSpan<UInt8>) {
    for index in output.indices { output[index] = bytes[index % 16] }
  }
}
