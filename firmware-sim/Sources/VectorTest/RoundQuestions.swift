import BoardQuestions
import HoldfastBearSSL
import HoldfastCore
import HoldfastReplay

/// Answers the operations 16 to 31, which are about the values that a device derives in a round.
func answerRound(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  switch question.operation {
  case 16: try values(question, &answer)
  case 17: try request(question, &answer)
  case 18: try verdict(question, &answer)
  case 19: try proof(question, &answer)
  default: throw Refused()
  }
}

/// Makes the round. Fields 0 to 3: M1, the head of M2, the measurement proof key (MPK), and the device measurement (DM) of
/// the prover's host.
private func round(
  _ question: borrowing BoardQuestion, _ cryptography: inout BearSSLCryptography
) throws(Refused) -> VectorRound {
  let proofKey: MeasurementProofKey = try secret(question.field(2))
  let device: Secret<32> = try secret(question.field(3))
  do throws(CryptographyFailure) {
    return try VectorRound(
      challenge: question.field(0), head: question.field(1), proofKey: proofKey, device: device, using: &cryptography)
  } catch { throw Refused() }
}

/// Derives the values of a round. The answer is the transcript hash, the nonce and both keys.
@inline(never)
private func values(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  var cryptography = BearSSLCryptography()
  var written = ByteBuffer<112>()
  let round = try round(question, &cryptography)
  do throws(EncodingFault) { try round.appendValues(to: &written) } catch { throw Refused() }
  answer.set(written.bytes)
}

/// Opens the request of a round. Field 4: M2. The answer is the request.
@inline(never)
private func request(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  var cryptography = BearSSLCryptography()
  var written = MessageBuffer()
  let round = try round(question, &cryptography)
  do throws(GivenRoundFault) {
    try round.appendRequest(in: question.field(4), to: &written, using: &cryptography)
  } catch { throw Refused() }
  answer.set(written.bytes)
}

/// Seals the verdict of a round. Fields 4 and 5: the status, and the plaintext of M3's sealed part. The answer is M3.
@inline(never)
private func verdict(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  var cryptography = BearSSLCryptography()
  var written = MessageBuffer()
  let round = try round(question, &cryptography)
  guard let number = UInt8(exactly: question.integer(4)), let status = Status(rawValue: number) else { throw Refused() }
  do throws(GivenRoundFault) {
    try round.appendVerdict(status, question.field(5), to: &written, using: &cryptography)
  } catch { throw Refused() }
  answer.set(written.bytes)
}

/// Computes a measurement proof. Fields: the measurement proof key (MPK), nonce, measurement. The answer is the proof.
@inline(never)
private func proof(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  var cryptography = BearSSLCryptography()
  let key: MeasurementProofKey = try secret(question.field(0))
  let nonce: Nonce = try fixed(question.field(1))
  let measurement: Secret<32> = try secret(question.field(2))
  let made: MAC
  do throws(CryptographyFailure) {
    made = try measurementProof(key: key, nonce: nonce, measurement: measurement, using: &cryptography)
  } catch { throw Refused() }
  answer.set(made.bytes)
}
