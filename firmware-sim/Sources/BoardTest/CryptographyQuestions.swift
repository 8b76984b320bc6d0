import BoardQuestions
import CBoardTest
import HoldfastBearSSL
import HoldfastBoard
import HoldfastCore

/// Answers the operations 0 to 31. `board.py`, which asks, describes their fields.
func answerCryptography(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ clock: BoardClock
) throws(OperationFailure) {
  var cryptography = BearSSLCryptography()
  do throws(CryptographyFailure) {
    switch question.operation {
    case 0...5: try digest(question, &answer, &cryptography)
    case 6: try hkdf(question, &answer, &cryptography)
    case 7: try sealGCM(question, &answer, &cryptography)
    case 8: try openGCM(question, &answer, &cryptography)
    case 9: try unwrapKey(question, &answer, &cryptography)
    case 10: try publicPoint(question, &answer, &cryptography)
    case 11: try agree(question, &answer, &cryptography)
    case 12: try verify(question, &cryptography)
    case 13: try agreeByKey(question, &answer)
    case 14: try random(question, &answer, clock)
    case 15: try field(question, &answer)
    default: throw CryptographyFailure()
    }
  } catch {
    throw OperationFailure()
  }
}

// None of these functions is inlined: otherwise all of their contexts would be on the stack at once.

/// Computes a digest or a MAC. Fields: for HMAC the key; then the message in any number of pieces.
@inline(never)
private func digest(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ cryptography: inout BearSSLCryptography
) throws(CryptographyFailure) {
  switch question.operation {
  case 0: try finish(cryptography.sha1(), of: question, from: 0, 20, &answer)
  case 1: try finish(cryptography.sha256(), of: question, from: 0, 32, &answer)
  case 2: try finish(cryptography.sha512(), of: question, from: 0, 64, &answer)
  case 3: try finish(cryptography.hmacSHA1(key: question.field(0)), of: question, from: 1, 20, &answer)
  case 4: try finish(cryptography.hmacSHA256(key: question.field(0)), of: question, from: 1, 32, &answer)
  default: try finish(cryptography.hmacSHA512(key: question.field(0)), of: question, from: 1, 64, &answer)
  }
}

@inline(never)
private func finish<Stream: StreamingDigest>(
  _ stream: consuming Stream, of question: borrowing BoardQuestion, from first: Int, _ count: Int,
  _ answer: inout BoardAnswer
) throws(CryptographyFailure) {
  for number in first..<question.fieldCount { stream.append(question.field(number)) }
  var output = answer.result(count)
  try stream.finish(into: &output)
}

/// Derives a key with HKDF. Fields: input key, salt, info, length of the output.
@inline(never)
private func hkdf(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ cryptography: inout BearSSLCryptography
) throws(CryptographyFailure) {
  var output = answer.result(Int(question.integer(3)))
  try cryptography.hkdfSHA256(
    inputKey: question.field(0), salt: question.field(1), info: question.field(2), into: &output)
}

/// Unwraps a key. Fields: wrapping key, wrapped key.
@inline(never)
private func unwrapKey(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ cryptography: inout BearSSLCryptography
) throws(CryptographyFailure) {
  var key = Secret<32>()
  try cryptography.aes256KeyUnwrap(wrappingKey: secret(question.field(0)), wrapped: question.field(1), into: &key)
  key.withBytes { answer.set($0) }
}

/// Computes a public point. Field: scalar.
@inline(never)
private func publicPoint(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ cryptography: inout BearSSLCryptography
) throws(CryptographyFailure) {
  let point = try cryptography.p256PublicPoint(scalar: secret(question.field(0)))
  answer.set(point.bytes)
}

/// Agrees on a secret. Fields: scalar, peer's point.
@inline(never)
private func agree(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ cryptography: inout BearSSLCryptography
) throws(CryptographyFailure) {
  var shared = Secret<32>()
  try cryptography.p256Agree(scalar: secret(question.field(0)), peer: fixed(question.field(1)), into: &shared)
  shared.withBytes { answer.set($0) }
}

/// Verifies a signature. Fields: key, digest, signature.
@inline(never)
private func verify(
  _ question: borrowing BoardQuestion, _ cryptography: inout BearSSLCryptography
) throws(CryptographyFailure) {
  try cryptography.p256Verify(
    key: fixed(question.field(0)), digest: fixed(question.field(1)), signature: fixed(question.field(2)))
}

/// Agrees on a secret by a ``SoftwareAgreementKey``. Fields: scalar, peer's point.
@inline(never)
private func agreeByKey(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(CryptographyFailure) {
  var key = try SoftwareAgreementKey(scalar: secret(question.field(0)))
  var shared = Secret<32>()
  try key.agree(with: fixed(question.field(1)), into: &shared)
  shared.withBytes { answer.set($0) }
}

/// Draws random bytes. Fields: entropy, secret of the device, number of the start, length of the output, number of draws. The
/// result is that of the last draw, and the ticks are those of one draw.
@inline(never)
private func random(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ clock: BoardClock
) throws(CryptographyFailure) {
  var random = try SeededRandom(
    entropy: secret(question.field(0)), deviceSecret: secret(question.field(1)),
    bootCount: UInt64(question.integer(2)))
  for _ in 0..<question.integer(4) {
    let begun = clock.ticks()
    var output = answer.result(Int(question.integer(3)))
    random.fill(&output)
    answer.ticks = clock.ticks() - begun
  }
}

/// Computes in the curve's field. Fields: an element, and up to 32 others.
@inline(never)
private func field(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(CryptographyFailure) {
  let count = question.field(1).count / 32
  guard question.field(0).count == 32, 1...32 ~= count else { throw CryptographyFailure() }
  var results = answer.result(128 * count)
  let areElements = unsafe question.field(0).withUnsafeBufferPointer { left in
    unsafe question.field(1).withUnsafeBufferPointer { rights in
      unsafe results.withUnsafeMutableBufferPointer {
        unsafe board_test_field(left.baseAddress!, rights.baseAddress!, UInt32(count), $0.baseAddress!)
      }
    }
  }
  guard areElements == 1 else { throw CryptographyFailure() }
}

/// Encrypts a message. Fields: key, nonce, associated data, message. The answer is the ciphertext and the tag.
@inline(never)
private func sealGCM(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ cryptography: inout BearSSLCryptography
) throws(CryptographyFailure) {
  var tag = AuthenticationTag()
  let count = question.field(3).count
  answer.set(question.field(3))
  var message = answer.result(count)
  try cryptography.aes256GCMSeal(
    key: secret(question.field(0)), nonce: question.field(1), authenticating: question.field(2), message: &message,
    tag: &tag)
  answer.append(tag.bytes)
}

/// Decrypts a message. Fields: key, nonce, associated data, ciphertext, tag. The answer is the message.
@inline(never)
private func openGCM(
  _ question: borrowing BoardQuestion, _ answer: inout BoardAnswer, _ cryptography: inout BearSSLCryptography
) throws(CryptographyFailure) {
  let count = question.field(3).count
  answer.set(question.field(3))
  var message = answer.result(count)
  try cryptography.aes256GCMOpen(
    key: secret(question.field(0)), nonce: question.field(1), authenticating: question.field(2), message: &message,
    tag: fixed(question.field(4)))
}

private func secret<let count: Int>(_ bytes: Span<UInt8>) throws(CryptographyFailure) -> Secret<count> {
  guard let secret = Secret<count>(copying: bytes) else { throw CryptographyFailure() }
  return secret
}

private func fixed<Kind, let count: Int>(_ bytes: Span<UInt8>) throws(CryptographyFailure) -> TypedBytes<Kind, count> {
  guard let fixed = TypedBytes<Kind, count>(bytes) else { throw CryptographyFailure() }
  return fixed
}
