import BoardQuestions
import HoldfastBearSSL
import HoldfastCore
import HoldfastReplay

/// Answers the operations 32 to 47. The field is a message or a part of one. The answer is the decoded message, encoded
/// again.
@inline(never)
func answerMessage(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  var written = MessageBuffer()
  do throws(EncodingFault) {
    switch question.operation {
    case 32: try RoundTrip.challenge(question.field(0), into: &written)
    case 33: try RoundTrip.answer(question.field(0), into: &written)
    case 34: try RoundTrip.verdict(question.field(0), into: &written)
    case 35: try RoundTrip.request(question.field(0), into: &written)
    default: throw .unexpected
    }
  } catch { throw Refused() }
  answer.set(written.bytes)
}

/// Answers the operations from 48 on, which are about HOTP, TOTP and OCRA.
func answerCode(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  switch question.operation {
  case 48: try hotp(question, counter: question.longInteger(3), &answer)
  case 49:
    let period = question.longInteger(4)
    guard (1...CodeMethod.maximumPeriodSeconds).contains(period) else { throw Refused() }
    try hotp(question, counter: TOTP.timeStep(at: question.longInteger(3), periodSeconds: period), &answer)
  case 50: try ocra(question, &answer)
  case 51: _ = try suite(question.field(0))
  default: throw Refused()
  }
}

/// Computes a one-time password. Fields: secret, name of the hash, digits, and counter, or time and period. The answer is the
/// code, or the whole HMAC for 0 digits.
@inline(never)
private func hotp(_ question: borrowing BoardQuestion, counter: UInt64, _ answer: inout BoardAnswer) throws(Refused) {
  var cryptography = BearSSLCryptography()
  let key = question.field(0)
  let digits = question.longInteger(2)
  let hash = try hash(question.field(1))
  guard key.count > 0 else { throw Refused() }
  do throws(CryptographyFailure) {
    if digits == 0 {
      answer.set(try HOTP.untruncated(counter: counter, key: key, hash: hash, using: &cryptography).bytes)
    } else {
      guard let digits = Int(exactly: digits), let length = CodeLength(digits) else { throw CryptographyFailure() }
      answer.set(try HOTP.code(counter: counter, key: key, hash: hash, length: length, using: &cryptography).bytes)
    }
  } catch { throw Refused() }
}

private func hash(_ name: Span<UInt8>) throws(Refused) -> OATHHash {
  if name.elementsEqual("SHA1") { return .sha1 }
  if name.elementsEqual("SHA256") { return .sha256 }
  if name.elementsEqual("SHA512") { return .sha512 }
  throw Refused()
}

private func suite(_ text: Span<UInt8>) throws(Refused) -> OCRASuite {
  guard let suite = OCRASuite(text) else { throw Refused() }
  return suite
}

/// Computes an OCRA code. Fields: secret, suite, question; bits that say which of the next fields are given; counter, PIN,
/// session, time step. The answer is the code, or the whole HMAC for a suite without digits.
@inline(never)
private func ocra(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  var cryptography = BearSSLCryptography()
  let key = question.field(0)
  let suite = try suite(question.field(1))
  guard key.count > 0, let asked = OCRAQuestion(question.field(2), for: suite) else { throw Refused() }
  let given = question.integer(3)
  let input = OCRAInput(
    counter: given & 1 != 0 ? question.longInteger(4) : nil, question: asked,
    pin: given & 2 != 0 ? question.field(5) : nil, session: given & 4 != 0 ? question.field(6) : nil,
    timeStep: given & 8 != 0 ? question.longInteger(7) : nil)
  do throws(OCRAFault) {
    if suite.length == nil {
      answer.set(try OCRA.untruncated(suite: suite, key: key, input: input, using: &cryptography).bytes)
    } else {
      answer.set(try OCRA.code(suite: suite, key: key, input: input, using: &cryptography).bytes)
    }
  } catch { throw Refused() }
}
