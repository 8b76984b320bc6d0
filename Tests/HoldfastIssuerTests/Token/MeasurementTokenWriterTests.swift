import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct MeasurementTokenWriterTests {
  let example: WorkedExample

  init() throws {
    example = try WorkedExample()
  }

  @Test func `the claims of the worked example are written byte for byte`() {
    var bytes: [UInt8] = []
    example.claims().appendCBOR(to: &bytes)
    #expect(hex(bytes) == example.text("claims_cbor"))
  }

  @Test func `the recipient's header, the key context and the content key are those of the worked example`() throws {
    var cryptography = OpenSSLCryptography()
    let encrypter = COSEEncrypter(
      device: example.fixed("keys.device_point"), deviceKeyID: example.fixed("keys.device_kid"))
    let header = encrypter.recipientHeader()
    #expect(hex(header) == example.text("cose.recipient_protected"))
    var context: [UInt8] = []
    context.appendCOSEKeyContext(recipientProtected: header.span)
    #expect(hex(context) == example.text("cose.kdf_context"))
    var ephemeral = try example.key("keys.ephemeral_private")
    let key = try encrypter.contentKey(ephemeral: &ephemeral, using: &cryptography)
    let bytes = key.withBytes { $0.array }
    #expect(hex(bytes) == example.text("cose.content_key"))
  }

  // Computed in Python, only from RFC 5869 and the formula.
  @Test func `the key that the issuer shares with the example's device is the one that was computed elsewhere`() throws
  {
    #expect(try hex(example.macKey()) == "d637954ddcedf7e02706b37c084f89ae76e44021628481e938e2baa370ad748e")
  }

  @Test func `around the example's signature the whole token is the example's, byte for byte`() throws {
    var cryptography = OpenSSLCryptography()
    let signature = try signatureOfExample()
    let claims = example.bytes("claims_cbor")
    let writer = COSEClaimsWriter(keyID: example.fixed("keys.issuer_kid"), isMAC: false)
    var issuer = try example.key("keys.issuer_private")
    var hash = cryptography.sha256()
    writer.append(contextOf: claims.span, to: &hash)
    try cryptography.p256Verify(key: issuer.publicPoint, digest: hash.finish(), signature: signature)
    var plaintext: COSEText = try writer.message(payload: claims.span, seal: signature.bytes)
    let encrypter = COSEEncrypter(
      device: example.fixed("keys.device_point"), deviceKeyID: example.fixed("keys.device_kid"))
    var ephemeral = try example.key("keys.ephemeral_private")
    let token = try encrypter.message(
      plaintext: &plaintext, ephemeral: &ephemeral, initializationVector: example.fixed("keys.iv"),
      using: &cryptography)
    #expect(hex(token) == example.text("cose.token"))
    _ = try issuer.sign(Digest())
  }

  @Test func `from the example's random bytes comes its token, but for the signature and what it touches`() throws {
    let token = try write(.cose, random: example.bytes("keys.ephemeral_private") + example.bytes("keys.iv"))
    let expected = example.bytes("cose.token")
    let signed = try open(token, .cose)
    #expect(signed.isSigned)
    #expect(token.count == expected.count)
    // All but the encrypted signature (64 bytes) and the tag behind it: the recipient follows.
    let recipient = 3 + 14 + 77 + 1
    #expect(token.suffix(recipient).elementsEqual(expected.suffix(recipient)))
    let head = token.count - recipient - 16 - 64 - 8
    #expect(token.prefix(head).elementsEqual(expected.prefix(head)))
  }

  @Test func `the JOSE content key is the example's`() throws {
    let shared = example.bytes("keys.ecdh_shared_secret")
    let key = try JWEParties().deriveKey(from: shared.span, algorithm: "A256GCM", byteCount: 32)
    #expect(hex(key.bytes.array) == example.text("jose.content_key"))
  }

  @Test(arguments: [(MeasurementTokenFormat.jose, "ECDH-ES"), (.joseKeyWrap, "ECDH-ES+A256KW")])
  func `a token in JOSE names the key management of its format`(
    format: MeasurementTokenFormat, algorithm: String
  ) throws {
    let first = Array(try write(format, random: nil).prefix { $0 != UInt8(ascii: ".") })
    let header = try decodeBase64URL(first.span)
    let parameters = try JSONValue(parsing: header.bytes, byteLimit: 1024)
    #expect(parameters["alg"]?.text == algorithm)
    #expect(parameters["enc"]?.text == "A256GCM" && parameters["cty"]?.text == "JWT")
    let keyID: KeyID = example.fixed("keys.device_kid")
    #expect(parameters["kid"]?.text == base64URLText(keyID))
  }

  @Test(arguments: [MeasurementTokenFormat.cose, .macCOSE, .unsignedCOSE, .jose, .joseKeyWrap])
  func `a device opens what is written, and reads the claims back`(format: MeasurementTokenFormat) throws {
    let token = try write(format, random: nil)
    let opened = try open(token, format)
    #expect(opened.isSigned == (format != .unsignedCOSE))
    #expect(opened.claims == example.text("claims_cbor"))
    let expected: KeyID? =
      switch format {
      case .unsignedCOSE: nil
      case .macCOSE: try example.macKeyID()
      case .cose, .jose, .joseKeyWrap: example.fixed("keys.issuer_kid")
      }
    #expect(opened.issuerKeyID == expected)
  }

  @Test(arguments: [MeasurementTokenFormat.cose, .macCOSE, .unsignedCOSE, .jose, .joseKeyWrap])
  func `optional claims come back too, also at their largest`(format: MeasurementTokenFormat) throws {
    let name = BoundedText<32>("0123456789abcdef0123456789abcd\"\\" as StaticString)
    var commands = CommandList()
    for _ in 0..<16 { try commands.append(name) }
    let long = BoundedText<64>("ééééééééééééééééééééééééééééééé" as StaticString)
    var claims = MeasurementClaims(
      issuer: long, subject: long, audience: example.deviceID, expires: maximumInteger, issuedAt: 0,
      tokenID: example.tokenID, integrity: example.secret("measurement.im"),
      device: example.secret("measurement.dm"), proofKey: example.secret("measurement.mpk"),
      generation: maximumInteger)
    claims.set(.maximumUses, maximumInteger)
    claims.set(commands: commands)
    claims.set(version: AppVersion(major: maximumInteger, minor: 1, patch: 2))
    claims.set(.user, name)
    let token = try write(format, claims: claims, random: nil)
    #expect(token.count <= 3072)
    var expected: [UInt8] = []
    claims.appendCBOR(to: &expected)
    #expect(try open(token, format).claims == hex(expected))
  }

  @Test func `each device has a MAC key of its own, and so has each public key that comes with a device's id`() throws {
    let keys = [
      try example.macKey(), try example.macKey(id: DeviceID()),
      try example.macKey(point: try P256PrivateKey().publicPoint),
    ]
    #expect(Set(keys).count == 3)
    #expect(try example.macKey() == keys[0])
    #expect(keys.allSatisfy { $0.count == 32 })
  }

  @Test func `a MAC key is HKDF-SHA-256 of the secret over label, id and point`() throws {
    // Extract and expand of RFC 5869, written out: one block of 32 bytes.
    var cryptography = OpenSSLCryptography()
    var extract = try cryptography.hmacSHA256(key: [UInt8](repeating: 0, count: 32).span)
    extract.append([UInt8](repeating: 0x5a, count: 32).span)
    let pseudorandom: Digest = try extract.finish()
    var expand = try cryptography.hmacSHA256(key: pseudorandom.bytes)
    expand.append((Array("holdfast/1 mac key".utf8) + [0]).span)
    expand.append(example.deviceID.bytes)
    expand.append(example.bytes("keys.device_point").span)
    expand.append(1)
    let expected: Digest = try expand.finish()
    #expect(try example.macKey() == expected.bytes.array)
  }

  @Test func `an issuer that shares no key writes no MAC`() throws {
    var cryptography = OpenSSLCryptography()
    var issuer = IssuerSecrets(signing: try example.key("keys.issuer_private"))
    var random = SystemRandom()
    #expect(throws: TokenWritingFault.noMACSecret) {
      _ = try MeasurementTokenWriter(format: .macCOSE).write(
        example.claims(), to: example.fixed("keys.device_point"), issuer: &issuer, random: &random,
        using: &cryptography)
    }
  }

  @Test func `a usual COSE token has 400 to 450 bytes`() throws {
    #expect((400...450).contains(try write(.cose, random: nil).count))
  }

  @Test func `an empty list of commands stays an empty list`() throws {
    var claims = claims()
    claims.set(commands: CommandList())
    let opened = try open(write(.cose, claims: claims, random: nil), .cose)
    var expected: [UInt8] = []
    claims.appendCBOR(to: &expected)
    #expect(opened.claims == hex(expected))
    #expect(opened.claims != example.text("claims_cbor"))
  }

  @Test func `claims out of range are refused`() {
    #expect(throws: TokenWritingFault.claims) { try write(.cose, claims: claims(expires: 5, issuedAt: 5), random: nil) }
    #expect(throws: TokenWritingFault.claims) {
      try write(.cose, claims: claims(expires: maximumInteger + 1), random: nil)
    }
    #expect(throws: TokenWritingFault.claims) {
      try write(.jose, claims: claims(generation: maximumInteger + 1), random: nil)
    }
  }

  @Test(arguments: [MeasurementTokenFormat.cose, .macCOSE, .unsignedCOSE, .jose, .joseKeyWrap])
  func `a random source that fails, or a point off the curve, gives no token`(format: MeasurementTokenFormat) {
    #expect(throws: TokenWritingFault.cryptography) { try write(format, random: []) }
    #expect(throws: TokenWritingFault.cryptography) {
      try write(format, random: [UInt8](repeating: 1, count: 40))
    }
    #expect(throws: TokenWritingFault.cryptography) {
      try write(format, device: P256Point(), random: [UInt8](repeating: 1, count: 100))
    }
  }
}
