import Glibc
import HoldfastCore
import HoldfastMeasurement
import HoldfastOpenSSL
import TestSupport

/// A work without such a name.
struct UnknownWork: Error {}

/// Returns one repetition of the named work, which returns whether its result is right.
func makeWork(_ name: String, _ inputs: Inputs) throws -> () throws -> Bool {
  switch name {
  case "token": return try TokenWork(inputs, .cose).perform
  case "jose": return try TokenWork(inputs, .jose).perform
  case "proof": return try proofWork()
  case "round": return try RoundWork(inputs).perform
  case "first-round": return try FirstRoundWork(inputs).perform
  case "measure": return try measureWork(inputs.executable)
  case "measure-large": return try measureWork(inputs.folder + "/large")
  case "process": return processWork()
  case "process-trees": return processWork(.treeDigests)
  case "hotp": return hotpWork()
  case "totp": return totpWork()
  case "ocra": return try ocraWork()
  default:
    // A kind of growth, and the size.
    let parts = name.split(separator: ":", maxSplits: 1).map(String.init)
    guard parts.count == 2 else { throw UnknownWork() }
    if parts[0] == "measure" { return try measureWork(inputs.folder + "/" + parts[1]) }
    guard let count = Int(parts[1]) else { throw UnknownWork() }
    if parts[0] == "libraries" { return try librariesWork(inputs, count: count) }
    guard let kind = LedgerWork.Kind(rawValue: parts[0]) else { throw UnknownWork() }
    return try LedgerWork(inputs, kind, count: count).perform
  }
}

/// A whole token, opened and verified: ECDH, AES-GCM, ES256 and its claims.
final class TokenWork {
  private let token: [UInt8]
  private let encoding: TokenEncoding
  private let integrity: [UInt8]
  private let keyID: KeyID
  private var key: P256PrivateKey
  private var trust = MemoryStore()
  private var opener = TokenOpener()
  private var verified = AuthenticatedToken()
  private var cryptography = OpenSSLCryptography()

  init(_ inputs: Inputs, _ encoding: TokenEncoding) throws {
    token = encoding == .cose ? inputs.token : try readFile(inputs.folder + "/token.jose")
    self.encoding = encoding
    integrity = Inputs.claims.integrity
    key = try Inputs.deviceKey()
    keyID = try HoldfastCore.keyID(of: key.publicPoint, using: &cryptography)
    trust = try MemoryStore(trusting: inputs.issuer)
  }

  func perform() throws -> Bool {
    let (token, expected) = (token, integrity)
    try opener.open(
      token.span, encoding: encoding, key: &key, keyID: keyID, trust: &trust, acceptsUnsigned: false,
      acceptsMAC: false, using: &cryptography, into: &verified)
    return verified.claims.integrity.withBytes { constantTimeEqual($0, expected.span) }
  }
}

/// A proof, computed and compared in constant time.
private func proofWork() throws -> () throws -> Bool {
  let key = MeasurementProofKey(copying: [UInt8](repeating: 0x33, count: 16).span)!
  let measurement = Secret<32>(copying: [UInt8](repeating: 0x11, count: 32).span)!
  let (holder, nonce) = (Held(key, measurement), Nonce(filledWith: 0x55))
  // By Python: hmac.new(b"\x33" * 16, b"\x55" * 16 + b"\x11" * 32, "sha256").
  let expected = hex("057bdc13a736544e3e5790adf68fdcab5942f2441c1dfb643827314eb1b8f08d")
  var cryptography = OpenSSLCryptography()
  return {
    let proof = try measurementProof(
      key: holder.key, nonce: nonce, measurement: holder.measurement, using: &cryptography)
    return constantTimeEqual(proof.bytes, expected.span)
  }
}

/// Secrets that a closure uses again and again.
private final class Held {
  let key: MeasurementProofKey
  let measurement: Secret<32>
  init(_ key: consuming MeasurementProofKey, _ measurement: consuming Secret<32>) {
    self.key = key
    self.measurement = measurement
  }
}

/// An executable file, hashed as `app.image` is, by one thread.
private func measureWork(_ path: String) throws -> () throws -> Bool {
  var cryptography = OpenSSLCryptography()
  var hash = cryptography.sha256()
  let bytes = try readFile(path)
  hash.append(bytes.span)
  let expected: Digest = try hash.finish()
  return { try ExecutableImage.digest(of: path) == expected }
}

/// This process, measured as a prover measures itself: its executable by one thread, all code in memory by another; with tree digests,
/// both by as many threads as there are processors.
private func processWork(_ policy: MeasurementPolicy = []) -> () throws -> Bool {
  var first: [Component] = []
  return {
    var measurer = Measurer(keys: .default)
    let now = try measurer.measure(under: policy, makingDeviceSecret: true).app
    if first.isEmpty { first = now }
    return first.map(\.digest) == now.map(\.digest)
  }
}

/// This process, measured with that many more libraries of 64 KiB.
private func librariesWork(_ inputs: Inputs, count: Int) throws -> () throws -> Bool {
  for number in 0..<count {
    guard unsafe dlopen("\(inputs.folder)/libraries/\(number).so", RTLD_NOW) != nil else { throw UnknownWork() }
  }
  return processWork()
}

/// One code of counter 0. Source: RFC 4226 appendix D.
private func hotpWork() -> () throws -> Bool {
  let expected = Array("755224".utf8)
  var cryptography = OpenSSLCryptography()
  return {
    let code = try HOTP.code(
      counter: 0, key: Inputs.codeKey.span, hash: .sha1, length: .six, using: &cryptography)
    return code.bytes.elementsEqual(expected.span)
  }
}

/// One code of the time 59 by HMAC-SHA-1, eight digits. Source: RFC 6238 appendix B.
private func totpWork() -> () throws -> Bool {
  let expected = Array("94287082".utf8)
  var cryptography = OpenSSLCryptography()
  return {
    let code = try HOTP.code(
      counter: TOTP.timeStep(at: 59, periodSeconds: 30), key: Inputs.codeKey.span, hash: .sha1, length: .eight,
      using: &cryptography)
    return code.bytes.elementsEqual(expected.span)
  }
}

/// One answer to the question 00000000. Source: RFC 6287 appendix C.1.
private func ocraWork() throws -> () throws -> Bool {
  let expected = Array("237653".utf8)
  let (text, digits) = (Array("OCRA-1:HOTP-SHA1-6:QN08".utf8), Array("00000000".utf8))
  guard let suite = OCRASuite(text.span), let question = OCRAQuestion(digits.span, for: suite) else {
    throw UnknownWork()
  }
  var cryptography = OpenSSLCryptography()
  return {
    let code = try OCRA.code(
      suite: suite, key: Inputs.codeKey.span, input: OCRAInput(question: question), using: &cryptography)
    return code.bytes.elementsEqual(expected.span)
  }
}
