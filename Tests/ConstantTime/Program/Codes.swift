import HoldfastCore
import HoldfastOpenSSL
import TestSupport

/// The key of RFC 4226 appendix D.
private let codeKey = Array("12345678901234567890".utf8)

/// A proof under a secret key, of a secret measurement, compared with the right one and with a wrong one.
func proof() throws -> Bool {
  let key: MeasurementProofKey = marked([UInt8](repeating: 0x33, count: 16))
  let measurement: Secret<32> = marked([UInt8](repeating: 0x11, count: 32))
  var cryptography = OpenSSLCryptography()
  let proof = try measurementProof(
    key: key, nonce: Nonce(filledWith: 0x55), measurement: measurement, using: &cryptography)
  // By Python: hmac.new(b"\x33" * 16, b"\x55" * 16 + b"\x11" * 32, "sha256").
  let expected = hex("057bdc13a736544e3e5790adf68fdcab5942f2441c1dfb643827314eb1b8f08d")
  var other = expected
  other[0] ^= 1
  return constantTimeEqual(proof.bytes, expected.span) && !constantTimeEqual(proof.bytes, other.span)
}

/// Codes of counters and times. Source: RFC 4226 appendix D, RFC 6238 appendix B.
func codes() throws -> Bool {
  var cryptography = OpenSSLCryptography()
  let key: [UInt8] = marked(codeKey)
  let long: [UInt8] = marked((0..<64).map { codeKey[$0 % 20] })
  var isRight = true
  for (counter, digits) in ["755224", "287082", "359152", "969429", "338314"].enumerated() {
    let code = try HOTP.code(counter: UInt64(counter), key: key.span, hash: .sha1, length: .six, using: &cryptography)
    isRight = isRight && constantTimeEqual(code.bytes, Array(digits.utf8).span)
  }
  for (hash, count, digits) in [(OATHHash.sha256, 32, "46119246"), (.sha512, 64, "90693936")] {
    let code = try HOTP.code(
      counter: 1, key: long.span.extracting(first: count), hash: hash, length: .eight, using: &cryptography)
    isRight = isRight && constantTimeEqual(code.bytes, Array(digits.utf8).span)
  }
  return isRight
}

/// An answer to a question. Source: RFC 6287 appendix C.1.
func ocra() throws -> Bool {
  let (text, digits) = (Array("OCRA-1:HOTP-SHA1-6:QN08".utf8), Array("00000000".utf8))
  guard let suite = OCRASuite(text.span), let question = OCRAQuestion(digits.span, for: suite) else { return false }
  var cryptography = OpenSSLCryptography()
  let key: [UInt8] = marked(codeKey)
  let code = try OCRA.code(
    suite: suite, key: key.span, input: OCRAInput(question: question), using: &cryptography)
  return constantTimeEqual(code.bytes, Array("237653".utf8).span)
}
