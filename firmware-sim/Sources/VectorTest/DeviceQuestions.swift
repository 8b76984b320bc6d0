import BoardQuestions
import HoldfastBearSSL
import HoldfastCore
import HoldfastReplay

/// Answers the operations 0 to 15: a device, the tokens that it opens, and its answers. `vector_board.py`, which asks,
/// describes their fields.
func answerDevice(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  if question.operation == 0 { return try makeDevice(question) }
  guard unsafe parties != nil else { throw Refused() }
  switch question.operation {
  case 1: try openToken(question, &answer)
  case 2: try rememberToken(question, &answer)
  case 3: try unsafe answerChallenge(question, by: &device!, &answer)
  default: throw Refused()
  }
}

private typealias Device = VectorDevice<BearSSLCryptography, SoftwareAgreementKey>

/// The device's ids and the issuers that it trusts, for opening tokens.
private struct Parties {
  let deviceID: DeviceID
  let keyID: KeyID
  let issuers: TrustedIssuers
}

// These are globals because they are too large for the stack.
nonisolated(unsafe) private var parties: Parties? = nil
nonisolated(unsafe) private var deviceKey: SoftwareAgreementKey? = nil
nonisolated(unsafe) private var device: Device? = nil

/// Makes the device. Fields: the device's private key, public point, key id and id; the issuer's public point and key id; a
/// MAC key and its id, or two empty fields.
///
/// - Throws: ``Refused`` if a key and its id do not belong together.
@inline(never)
private func makeDevice(_ question: borrowing BoardQuestion) throws(Refused) {
  var cryptography = BearSSLCryptography()
  let key = try agreementKey(question)
  let point: P256Point = try fixed(question.field(1))
  let keyID: KeyID = try fixed(question.field(2))
  let deviceID: DeviceID = try fixed(question.field(3))
  let issuer: P256Point = try fixed(question.field(4))
  let issuerKeyID: KeyID = try fixed(question.field(5))
  var shared: TrustedIssuers.Shared?
  if question.field(6).count > 0 {
    let id: KeyID = try fixed(question.field(7))
    let bytes: FixedBytes<32> = try fixed(question.field(6))
    guard try isID(id, of: .mac(secret(question.field(6))), using: &cryptography) else { throw Refused() }
    shared = TrustedIssuers.Shared(keyID: id, key: bytes)
  }
  guard point == key.publicPoint, try isID(keyID, of: .signing(point), using: &cryptography),
    try isID(issuerKeyID, of: .signing(issuer), using: &cryptography)
  else { throw Refused() }
  let issuers = TrustedIssuers(keyID: issuerKeyID, publicKey: issuer, shared: shared)
  unsafe parties = Parties(deviceID: deviceID, keyID: keyID, issuers: issuers)
  unsafe deviceKey = .some(key)
  unsafe device = Device(
    deviceID: deviceID, keyID: keyID, key: try agreementKey(question), issuers: issuers, cryptography: cryptography)
}

private func agreementKey(_ question: borrowing BoardQuestion) throws(Refused) -> SoftwareAgreementKey {
  let scalar: Secret<32> = try secret(question.field(0))
  do throws(CryptographyFailure) { return try SoftwareAgreementKey(scalar: scalar) } catch { throw Refused() }
}

private func isID(
  _ id: KeyID, of key: borrowing IssuerKey, using cryptography: inout BearSSLCryptography
) throws(Refused) -> Bool {
  do throws(CryptographyFailure) { return try keyID(of: key, using: &cryptography) == id } catch { throw Refused() }
}

/// Opens a token. Fields: encoding; switches of the policy, 1 for unsigned tokens and 2 for MACs; token. The answer is the
/// claims in CBOR.
@inline(never)
private func openToken(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  let switches = question.integer(1)
  let token = try opened(
    question.field(2), question.integer(0), acceptsUnsigned: switches & 1 != 0, acceptsMAC: switches & 2 != 0)
  var written = VerdictBuffer()
  do throws(EncodingFault) { try written.append(claims: token.claims) } catch { throw Refused() }
  answer.set(written.bytes)
}

/// Opens a token and remembers it. Fields: encoding, token. The answer is the token's reference.
@inline(never)
private func rememberToken(_ question: borrowing BoardQuestion, _ answer: inout BoardAnswer) throws(Refused) {
  let token = try opened(question.field(1), question.integer(0), acceptsUnsigned: false, acceptsMAC: false)
  var cryptography = BearSSLCryptography()
  let reference: TokenReference
  do throws(CryptographyFailure) {
    reference = try tokenReference(question.field(1), using: &cryptography)
  } catch { throw Refused() }
  unsafe device?.remember(token, as: reference)
  answer.set(reference.bytes)
}

@inline(never)
private func opened(
  _ bytes: Span<UInt8>, _ encoding: UInt32, acceptsUnsigned: Bool, acceptsMAC: Bool
) throws(Refused) -> AuthenticatedToken {
  guard let parties = unsafe parties, let number = UInt8(exactly: encoding),
    let encoding = TokenEncoding(rawValue: number)
  else { throw Refused() }
  var opener = TokenOpener()
  var trust = parties.issuers
  var cryptography = BearSSLCryptography()
  var token = AuthenticatedToken()
  do throws(TokenFault) {
    try unsafe opener.open(
      bytes, encoding: encoding, key: &deviceKey!, keyID: parties.keyID, trust: &trust,
      acceptsUnsigned: acceptsUnsigned, acceptsMAC: acceptsMAC, using: &cryptography, into: &token)
  } catch { throw Refused() }
  guard token.claims.audience == parties.deviceID else { throw Refused() }
  return token
}

/// Answers a challenge. Fields: M1, M2, the result of a command that is accepted. The answer is the status and M3.
@inline(never)
private func answerChallenge(
  _ question: borrowing BoardQuestion, by device: inout Device, _ answer: inout BoardAnswer
) throws(Refused) {
  do throws(EncodingFault) {
    let status = try device.answer(question.field(1), to: question.field(0), result: question.field(2))
    let byte = InlineArray<1, UInt8>(repeating: status.rawValue)
    answer.append(byte.span)
    answer.append(device.verdict)
  } catch { throw Refused() }
}
