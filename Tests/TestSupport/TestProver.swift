import HoldfastCore
import HoldfastOpenSSL

/// The mistake that a prover under test makes.
package struct Flaws: OptionSet, Sendable {
  package let rawValue: Int

  package init(rawValue: Int) {
    self.rawValue = rawValue
  }

  package static let wrongIntegrity = Flaws(rawValue: 1)
  package static let noIntegrity = Flaws(rawValue: 2)
  package static let wrongDevice = Flaws(rawValue: 4)
  package static let noDevice = Flaws(rawValue: 8)
  /// `sealed` was made with other keys.
  package static let wrongSeal = Flaws(rawValue: 16)
  package static let asReference = Flaws(rawValue: 32)
}

/// The app's side of a round, byte by byte as docs/protocol.md specifies it.
package final class TestProver {
  package var claims: TestClaims
  package var token: [UInt8]
  private var cryptography = OpenSSLCryptography()

  package init(_ claims: TestClaims, token: [UInt8]) {
    (self.claims, self.token) = (claims, token)
  }

  /// Returns M2 for `challenge`, and the keys that open its M3.
  package func answer(
    _ challenge: [UInt8], command: String, parameters: [String] = [], flaws: Flaws = [], otp: UserCode? = nil,
    seal userSeal: UserCode? = nil, number: UInt64? = nil
  ) throws -> TestAnswer {
    var head: [UInt8] = []
    let isReference = flaws.contains(.asReference)
    let sent = isReference ? try reference() : token
    ProofMessageHead.encode(
      random: fixed(try randomBytes(16)), encoding: isReference ? .reference : .cose, token: sent.span, into: &head)
    let transcript = try Transcript(challenge: challenge.span, head: head.span, using: &cryptography)
    var request = Request(command: BoundedText<32>(command)!)
    for parameter in parameters { try request.append(parameter: BoundedText(parameter)!) }
    (request.codes[.otp], request.codes[.seal], request.number) = (otp, userSeal, number)
    var sealed: [UInt8] = []
    request.encode(into: &sealed)
    try seal(&sealed, transcript: transcript, isWrong: flaws.contains(.wrongSeal))
    var message: [UInt8] = []
    message.appendCBOR(array: 5)
    message.appendCBOR(unsigned: 2)
    message.appendCBOR(bytes: head.span)
    try appendProofs(nonce: transcript.proofNonce, flaws: flaws, to: &message)
    message.appendCBOR(bytes: sealed.span)
    return TestAnswer(message: message, transcript: transcript)
  }

  /// Returns M2 of a compatibility round, with a nonce that the app chose.
  package func compatibilityAnswer(nonce: [UInt8], command: String, flaws: Flaws = []) throws -> [UInt8] {
    var message: [UInt8] = []
    message.appendCBOR(array: 7)
    message.appendCBOR(unsigned: 12)
    message.appendCBOR(bytes: nonce.span)
    let isReference = flaws.contains(.asReference)
    message.appendCBOR(unsigned: isReference ? 0 : 1)
    let sent = isReference ? try reference() : token
    message.appendCBOR(bytes: sent.span)
    try appendProofs(nonce: fixed(nonce), flaws: flaws, to: &message)
    message.appendCBOR(text: Array(command.utf8).span)
    return message
  }

  /// Returns the reply in M3; nil if it has none that opens.
  package func open(_ message: [UInt8], after answer: TestAnswer) throws -> TestVerdict {
    let verdict = try VerdictMessage(message.span)
    guard verdict.isSealed else { return TestVerdict(status: verdict.status, result: nil, notice: nil) }
    var buffer = SealedReplyBuffer()
    try buffer.append(verdict.sealed)
    let keys = try sessionKeys(answer.transcript)
    var authenticated = Array(answer.transcript.hash)
    authenticated.append(verdict.status.rawValue)
    try buffer.open(
      key: keys.deviceToProver, nonce: FixedBytes<12>().bytes, authenticating: authenticated.span,
      using: &cryptography)
    let reply = try VerdictBody(buffer.bytes)
    return TestVerdict(
      status: verdict.status, result: String(decoding: Array(reply.result.bytes), as: UTF8.self),
      notice: reply.notice)
  }

  private func reference() throws -> [UInt8] {
    let token = token
    let reference = try tokenReference(token.span, using: &cryptography)
    return Array(reference)
  }

  private func appendProofs(nonce: Nonce, flaws: Flaws, to message: inout [UInt8]) throws {
    try appendProof(
      of: claims.integrity, nonce: nonce, isAbsent: flaws.contains(.noIntegrity),
      isWrong: flaws.contains(.wrongIntegrity), to: &message)
    try appendProof(
      of: claims.device, nonce: nonce, isAbsent: flaws.contains(.noDevice), isWrong: flaws.contains(.wrongDevice),
      to: &message)
  }

  private func appendProof(
    of measurement: [UInt8], nonce: Nonce, isAbsent: Bool, isWrong: Bool, to message: inout [UInt8]
  ) throws {
    guard !isAbsent else { return message.appendCBORNull() }
    let key = MeasurementProofKey(copying: claims.proofKey.span) ?? MeasurementProofKey()
    let secret = Secret<32>(copying: measurement.span) ?? Secret<32>()
    var proof = try measurementProof(key: key, nonce: nonce, measurement: secret, using: &cryptography)
    if isWrong { proof[31] ^= 1 }
    message.appendCBOR(bytes: proof.bytes)
  }

  private func seal(_ request: inout [UInt8], transcript: Transcript, isWrong: Bool) throws {
    var buffer = SealedRequestBuffer()
    try buffer.append(request.span)
    let keys = try sessionKeys(transcript)
    let zero = FixedBytes<12>()
    if isWrong {
      try buffer.seal(
        key: keys.deviceToProver, nonce: zero.bytes, authenticating: transcript.hash.bytes, using: &cryptography)
    } else {
      try buffer.seal(
        key: keys.proverToDevice, nonce: zero.bytes, authenticating: transcript.hash.bytes, using: &cryptography)
    }
    request = Array(buffer.bytes)
  }

  private func sessionKeys(_ transcript: Transcript) throws -> SessionKeys {
    let key = MeasurementProofKey(copying: claims.proofKey.span) ?? MeasurementProofKey()
    let device = Secret<32>(copying: claims.device.span) ?? Secret<32>()
    return try SessionKeys(proofKey: key, device: device, transcript: transcript, using: &cryptography)
  }
}

/// M2, and the transcript that its M3 is bound to.
package struct TestAnswer {
  package var message: [UInt8]
  package let transcript: Transcript
}

/// An opened M3.
package struct TestVerdict: Equatable {
  package let status: Status
  /// The sealed contents; nil without a sealed part.
  package let result: String?
  package let notice: Notice?

  package init(status: Status, result: String?, notice: Notice?) {
    (self.status, self.result, self.notice) = (status, result, notice)
  }
}
