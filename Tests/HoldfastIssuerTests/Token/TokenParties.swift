import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport

import HoldfastIssuer

/// The claims that a device found in a token.
struct OpenedToken {
  let issuerKeyID: KeyID?
  /// The claims, written again, as hexadecimal digits.
  let claims: String
  var isSigned: Bool { issuerKeyID != nil }
}

extension MeasurementTokenWriterTests {
  func claims(
    expires: UInt64 = 1_790_003_600, issuedAt: UInt64 = 1_790_000_000, generation: UInt64 = 1
  ) -> MeasurementClaims {
    MeasurementClaims(
      issuer: BoundedText("issuer.example" as StaticString), subject: BoundedText("app" as StaticString),
      audience: example.deviceID, expires: expires, issuedAt: issuedAt,
      tokenID: example.tokenID, integrity: example.secret("measurement.im"),
      device: example.secret("measurement.dm"), proofKey: example.secret("measurement.mpk"), generation: generation)
  }

  /// Writes a token from these random bytes, or from the kernel's.
  func write(
    _ format: MeasurementTokenFormat, device: P256Point? = nil, random: [UInt8]?
  ) throws -> [UInt8] {
    try write(format, claims: example.claims(), device: device, random: random)
  }

  func write(
    _ format: MeasurementTokenFormat, claims: borrowing MeasurementClaims, device: P256Point? = nil, random: [UInt8]?
  ) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    var issuer = IssuerSecrets(signing: try example.key("keys.issuer_private"), macSecret: example.macSecret())
    let device = device ?? example.fixed("keys.device_point")
    let writer = MeasurementTokenWriter(format: format)
    guard let random else {
      var random = SystemRandom()
      return try writer.write(claims, to: device, issuer: &issuer, random: &random, using: &cryptography)
    }
    var listed = ListedRandom(bytes: random)
    return try writer.write(claims, to: device, issuer: &issuer, random: &listed, using: &cryptography)
  }

  /// Opens a token as the example's device does.
  func open(_ token: [UInt8], _ format: MeasurementTokenFormat) throws -> OpenedToken {
    var cryptography = OpenSSLCryptography()
    var key = try example.key("keys.device_private")
    let issuer = try example.key("keys.issuer_private")
    var trust = try MemoryStore(trusting: issuer.publicPoint, macKey: example.macKey())
    var opener = TokenOpener()
    var verified = AuthenticatedToken()
    try opener.open(
      token.span, encoding: format.encoding, key: &key, keyID: example.fixed("keys.device_kid"), trust: &trust,
      acceptsUnsigned: format == .unsignedCOSE, acceptsMAC: format == .macCOSE, using: &cryptography, into: &verified)
    var claims: [UInt8] = []
    verified.claims.appendCBOR(to: &claims)
    return OpenedToken(issuerKeyID: verified.verifyingKey, claims: hex(claims))
  }

  /// The signature inside the example's COSE token: the last 64 bytes of what its content key decrypts.
  func signatureOfExample() throws -> FixedBytes<64> {
    var cryptography = OpenSSLCryptography()
    let key: Secret<32> = example.secret("cose.content_key")
    let token = example.bytes("cose.token")
    let recipient = example.bytes("cose.recipient_protected")
    // The ciphertext ends where the array of one recipient begins.
    let end = token.indices.last { Array(token[$0...].prefix(3 + recipient.count)) == [0x81, 0x83, 0x4e] + recipient }!
    let start = token.firstRange(of: example.bytes("keys.iv"))!.upperBound + 3
    var message = Array(token[start..<end - 16])
    let tag = AuthenticationTag(Array(token[end - 16..<end]).span)!
    var context: [UInt8] = []
    context.appendCOSEEncryptionContext()
    let vector = example.bytes("keys.iv")
    var span = message.mutableSpan
    try cryptography.aes256GCMOpen(
      key: key, nonce: vector.span, authenticating: context.span, message: &span, tag: tag)
    let signature = Array(message.suffix(64))
    return TypedBytes(signature.span)!
  }
}

extension WorkedExample {
  /// The secret from which the example's issuer derives MAC keys.
  func macSecret() -> Secret<32> { TestSupport.secret([UInt8](repeating: 0x5a, count: 32)) }

  /// The key that it shares with the example's device, or with another one.
  func macKey(id: DeviceID? = nil, point: P256Point? = nil) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    let key = try deviceMACKey(
      from: macSecret(), for: id ?? deviceID, point ?? fixed("keys.device_point"), using: &cryptography)
    return key.withBytes { $0.array }
  }

  func macKeyID() throws -> KeyID {
    var cryptography = OpenSSLCryptography()
    return try keyID(of: .mac(TestSupport.secret(macKey())), using: &cryptography)
  }
}
