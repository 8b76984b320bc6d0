import CSecretMarks
import HoldfastCore
import HoldfastIssuer
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport

/// A `COSE_Sign1`, opened.
func signedToken() throws -> Bool { try opens(.cose) }

/// A `COSE_Mac0`, opened under a secret key that the issuer shares with the device.
func authenticatedToken() throws -> Bool { try opens(.macCOSE) }

/// A JWS in a JWE, opened: its secrets are base64 in JSON in base64url.
func joseToken() throws -> Bool { try opens(.jose) }

/// A JWE whose content key is unwrapped.
func wrappedJOSEToken() throws -> Bool { try opens(.joseKeyWrap) }

/// A key that is wrapped, unwrapped, and refused once it was changed. Source: RFC 3394 §4.6.
func keyWrap() throws -> Bool {
  let plain = hex("00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f")
  let expected = hex("28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21")
  let key: [UInt8] = marked((0..<32).map { UInt8($0) })
  let secret: [UInt8] = marked(plain)
  var wrapped = try AESKeyWrap.wrap(key: key.span, plain: secret.span)
  reveal(wrapped.span)
  let unwrapped = try AESKeyWrap.unwrap(key: key.span, wrapped: wrapped.span)
  let isSame = wrapped == expected && unwrapped.withBytes { constantTimeEqual($0, plain.span) }
  wrapped[39] ^= 1
  do { _ = try AESKeyWrap.unwrap(key: key.span, wrapped: wrapped.span) } catch { return isSame }
  return false
}

/// Returns whether a token that is opened has its claims. The shared secret and what the token says about the app are secret; its
/// structure and its other claims are not.
private func opens(_ format: MeasurementTokenFormat) throws -> Bool {
  let audience = DeviceID(filledWith: 0xd1)
  let secrets = [(32, 0x11), (32, 0x22), (16, 0x33)].map { count, start in
    (0..<count).map { UInt8(truncatingIfNeeded: start + $0 * 7) }
  }
  // Not all of the text is ASCII.
  let subject = BoundedText<64>("app.prüfung")
  let claims = MeasurementClaims(
    issuer: "https://issuer.test", subject: subject, audience: audience, expires: testTime + 10, issuedAt: testTime,
    tokenID: TokenID(filledWith: 0x77), integrity: secret(secrets[0]), device: secret(secrets[1]),
    proofKey: secret(secrets[2]), generation: 1)
  var libcrypto = OpenSSLCryptography()
  var random = SystemRandom()
  var key = MarkingKey(try P256PrivateKey())
  let macSecret = [UInt8](repeating: 0x44, count: 32)
  var issuer = IssuerSecrets(signing: try P256PrivateKey(), macSecret: secret(macSecret))
  let token = try MeasurementTokenWriter(format: format).write(
    claims, to: key.publicPoint, issuer: &issuer, random: &random, using: &libcrypto)
  var trust =
    if format == .macCOSE {
      try OneIssuer(
        .mac(deviceMACKey(from: secret(macSecret), for: audience, key.publicPoint, using: &libcrypto)), &libcrypto)
    } else {
      try OneIssuer(.signing(issuer.signing.publicPoint), &libcrypto)
    }

  var cryptography = MarkingCryptography(secrets: secrets)
  let keyID = try HoldfastCore.keyID(of: key.publicPoint, using: &libcrypto)
  var opener = TokenOpener()
  var verified = AuthenticatedToken()
  try opener.open(
    token.span, encoding: format.encoding, key: &key, keyID: keyID, trust: &trust, acceptsUnsigned: false,
    acceptsMAC: true, using: &cryptography, into: &verified)
  guard cryptography.markedCount == 3, verified.claims.subject == subject else { return false }
  return holds(verified.claims.integrity, secrets[0]) && holds(verified.claims.device, secrets[1])
    && holds(verified.claims.proofKey, secrets[2])
}

/// Trust in one key, which is taken once. A MAC key is secret.
private struct OneIssuer: IssuerTrust, ~Copyable {
  private let id: KeyID
  private var key: IssuerKey?

  init(_ key: consuming IssuerKey, _ cryptography: inout OpenSSLCryptography) throws {
    let isMAC = key.isMAC
    id = try keyID(of: key, using: &cryptography)
    self.key = consume key
    guard isMAC else { return }
    unsafe withUnsafeMutableBytes(of: &self.key) { bytes in
      // A MAC key is shorter than a point. What is behind it has any value, is compared with the kind of key, and is no secret.
      unsafe marks_clear(bytes.baseAddress, bytes.count)
      unsafe marks_set(bytes.baseAddress, 32)
    }
  }

  mutating func trustedIssuer(_ keyID: KeyID) -> IssuerKey? { keyID == id ? key.take() : nil }
}

private func holds<let count: Int>(_ secret: borrowing Secret<count>, _ bytes: [UInt8]) -> Bool {
  secret.withBytes { constantTimeEqual($0, bytes.span) }
}
