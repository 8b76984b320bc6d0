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

/// Codes of counters. Source: RFC 4226 appendix D.
func counterCodes() throws -> Bool {
  let codes = ["755224", "287082", "359152", "969429", "338314"].enumerated().map { (UInt64($0), $1) }
  return try areRight(codes, hash: .sha1, keyByteCount: 20, length: .six)
}

/// Codes of times. Source: RFC 6238 appendix B.
func timeCodes() throws -> Bool {
  let times: [UInt64] = [59, 1_111_111_109, 1_111_111_111, 1_234_567_890, 2_000_000_000, 20_000_000_000]
  let table: [(OATHHash, Int, [String])] = [
    (.sha1, 20, ["94287082", "07081804", "14050471", "89005924", "69279037", "65353130"]),
    (.sha256, 32, ["46119246", "68084774", "67062674", "91819424", "90698825", "77737706"]),
    (.sha512, 64, ["90693936", "25091201", "99943326", "93441116", "38618901", "47863826"]),
  ]
  return try table.allSatisfy { hash, keyByteCount, digits in
    let steps = times.map { TOTP.timeStep(at: $0, periodSeconds: 30) }
    return try areRight(Array(zip(steps, digits)), hash: hash, keyByteCount: keyByteCount, length: .eight)
  }
}

private func areRight(
  _ codes: [(counter: UInt64, digits: String)], hash: OATHHash, keyByteCount: Int, length: CodeLength
) throws -> Bool {
  var cryptography = OpenSSLCryptography()
  let key: [UInt8] = marked((0..<keyByteCount).map { codeKey[$0 % 20] })
  var isRight = true
  for (counter, digits) in codes {
    let code = try HOTP.code(counter: counter, key: key.span, hash: hash, length: length, using: &cryptography)
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

/// Seals over a command with a parameter: from a counter, from the time, and over a device's challenge. The expected ones are by Python's
/// hmac, from RFC 6287 and docs/protocol.md.
func seals() throws -> Bool {
  var cryptography = OpenSSLCryptography()
  let key: [UInt8] = marked(codeKey)
  let digest = try sealQuestion(
    command: "unlock", parameterCount: 1, parameter: { _ in "door 3" }, using: &cryptography)
  let cases: [(suite: String, challenge: String, counter: UInt64?, timeStep: UInt64?, digits: String)] = [
    ("OCRA-1:HOTP-SHA256-8:C-QH64", "", 5, nil, "70769114"),
    ("OCRA-1:HOTP-SHA256-8:QH64-T1M", "", nil, 1_750_000_000 / 60, "16350452"),
    ("OCRA-1:HOTP-SHA512-8:QH64", "0123456789abcdef", nil, nil, "18790742"),
  ]
  return try cases.allSatisfy { seal in
    let text = Array(seal.challenge.utf8) + Array(digest)
    guard let suite = OCRASuite(seal.suite), let question = OCRAQuestion(text.span, for: suite) else { return false }
    let code = try OCRA.code(
      suite: suite, key: key.span,
      input: OCRAInput(counter: seal.counter, question: question, timeStep: seal.timeStep), using: &cryptography)
    return constantTimeEqual(code.bytes, Array(seal.digits.utf8).span)
  }
}
