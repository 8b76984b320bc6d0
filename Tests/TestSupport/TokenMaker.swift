import HoldfastCore
import HoldfastOpenSSL

/// The claims of a token under test.
package struct TestClaims {
  package var subject = "app.test"
  package var audience: DeviceID
  package var expires: UInt64 = testTime + 86_400
  package var issuedAt: UInt64 = testTime
  package var tokenID = TokenID(filledWith: 0x77)
  package var integrity: [UInt8] = Array(repeating: 0x11, count: 32)
  package var device: [UInt8] = Array(repeating: 0x22, count: 32)
  package var proofKey: [UInt8] = Array(repeating: 0x33, count: 16)
  package var generation: UInt64 = 1
  package var maximumUses: UInt64?
  package var commands: [String]?
  package var version: (UInt64, UInt64, UInt64)?
  package var user: String?

  package init(for audience: DeviceID) {
    self.audience = audience
  }

  package func encoded() -> [UInt8] {
    let optionals = [maximumUses != nil, commands != nil, version != nil, user != nil].filter { $0 }.count
    var map: [UInt8] = []
    map.appendCBOR(map: 10 + optionals)
    map.appendText(Claim.issuer.label, "https://issuer.test")
    map.appendText(Claim.subject.label, subject)
    map.appendText(Claim.audience.label, base64URLText(audience))
    map.appendNumber(Claim.expires.label, expires)
    map.appendNumber(Claim.issuedAt.label, issuedAt)
    map.appendBytes(Claim.tokenID.label, Array(tokenID))
    map.appendBytes(Claim.integrity.label, integrity)
    map.appendBytes(Claim.device.label, device)
    map.appendBytes(Claim.proofKey.label, proofKey)
    map.appendNumber(Claim.generation.label, generation)
    if let maximumUses { map.appendNumber(Claim.maximumUses.label, maximumUses) }
    if let commands {
      map.appendCBOR(integer: Claim.commands.label)
      map.appendCBOR(array: commands.count)
      for command in commands { map.appendCBOR(text: Array(command.utf8).span) }
    }
    if let version {
      map.appendCBOR(integer: Claim.version.label)
      map.appendCBOR(array: 3)
      for number in [version.0, version.1, version.2] { map.appendCBOR(unsigned: number) }
    }
    if let user { map.appendText(Claim.user.label, user) }
    return map
  }
}

/// The deliberate faults of a token under test; at first, there are none.
package struct TokenFlaws {
  /// Whether the claims are signed, or authenticated by a MAC.
  package var isSigned = true
  /// The label of the key id in the recipient's header.
  package var recipientKeyLabel = COSE.keyIDLabel
  /// The unprotected header of the signature or MAC.
  package var unprotectedHeader: [UInt8] = [0xa0]
  /// Changes the claims before they are signed.
  package var changeClaims: (inout [UInt8]) throws -> Void = { _ in }
  /// Changes the plaintext before it is encrypted.
  package var changePlaintext: (inout [UInt8]) throws -> Void = { _ in }

  package init(isSigned: Bool = true) {
    self.isSigned = isSigned
  }
}

/// An issuer of tokens, as COSE.
package final class TestIssuer {
  private var key: P256PrivateKey
  /// The key that it shares with the device, if it creates a `COSE_Mac0`.
  private let macKey: [UInt8]?
  private var cryptography = OpenSSLCryptography()

  package init(sharing macKey: [UInt8]? = nil) throws {
    key = try P256PrivateKey()
    self.macKey = macKey
  }

  package init(scalar: [UInt8]) throws {
    key = try P256PrivateKey(scalar: secret(scalar))
    macKey = nil
  }

  package var point: P256Point { key.publicPoint }

  /// The key that a device should trust.
  package func trustedKey() -> IssuerKey {
    guard let macKey, let secret = Secret<32>(copying: macKey.span) else { return .signing(point) }
    return .mac(secret)
  }

  package func keyID() throws -> KeyID {
    try HoldfastCore.keyID(of: trustedKey(), using: &cryptography)
  }

  /// Returns a `COSE_Encrypt` to `recipient` around a `COSE_Sign1`, a `COSE_Mac0` or bare claims.
  package func token(
    _ claims: TestClaims, to recipient: P256Point, flaws: TokenFlaws = TokenFlaws()
  ) throws -> [UInt8] {
    var plaintext = claims.encoded()
    try flaws.changeClaims(&plaintext)
    if flaws.isSigned { plaintext = try vouch(for: plaintext, flaws) }
    try flaws.changePlaintext(&plaintext)
    return try encrypt(plaintext, to: recipient, keyLabel: flaws.recipientKeyLabel)
  }

  /// Returns a bulletin; with `device`, one that is encrypted to it.
  package func bulletin(_ bulletin: TestBulletin, sealedTo device: P256Point? = nil) throws -> [UInt8] {
    let signed = try vouch(for: bulletin.encoded(), TokenFlaws(), type: COSE.bulletinType)
    return try device.map { try encrypt(signed, to: $0, keyLabel: COSE.keyIDLabel) } ?? signed
  }

  /// Returns a receipt with these claims.
  package func receipt(_ claims: [UInt8]) throws -> [UInt8] {
    try vouch(for: claims, TokenFlaws(), type: COSE.receiptType)
  }

  private func vouch(
    for payload: [UInt8], _ flaws: TokenFlaws, type: StaticString = COSE.measurementTokenType
  ) throws -> [UInt8] {
    var protected: [UInt8] = []
    protected.appendCBOR(map: 3)
    protected.appendCBOR(integer: COSE.algorithmLabel)
    protected.appendCBOR(integer: macKey == nil ? COSE.es256 : COSE.hmac256)
    protected.appendBytes(COSE.keyIDLabel, Array(try keyID()))
    protected.appendCBOR(integer: COSE.typeLabel)
    protected.appendCBOR(text: type)
    var message: [UInt8] = []
    message.appendCBOR(tag: macKey == nil ? COSE.sign1Tag : COSE.mac0Tag)
    message.appendCBOR(array: 4)
    message.appendCBOR(bytes: protected.span)
    message += flaws.unprotectedHeader
    message.appendCBOR(bytes: payload.span)
    if let macKey {
      var mac = try cryptography.hmacSHA256(key: macKey.span)
      mac.appendCOSEClaimsContext(COSE.macContext, protected: protected.span, payload: payload.span)
      message.appendCBOR(bytes: (try mac.finish() as MAC).bytes)
    } else {
      var hash = cryptography.sha256()
      hash.appendCOSEClaimsContext(COSE.signatureContext, protected: protected.span, payload: payload.span)
      message.appendCBOR(bytes: try key.sign(try hash.finish()).bytes)
    }
    return message
  }

  private func encrypt(_ plaintext: [UInt8], to recipient: P256Point, keyLabel: Int64) throws -> [UInt8] {
    var ephemeral = try P256PrivateKey()
    var recipientProtected: [UInt8] = []
    recipientProtected.appendCBOR(map: 2)
    recipientProtected.appendCBOR(integer: COSE.algorithmLabel)
    recipientProtected.appendCBOR(integer: COSE.ecdhHKDF256)
    let recipientID = try HoldfastCore.keyID(of: recipient, using: &cryptography)
    recipientProtected.appendBytes(keyLabel, Array(recipientID))
    let contentKey = try contentKey(&ephemeral, recipient, recipientProtected)
    // The key is used only once.
    let iv = [UInt8](repeating: 0, count: 12)
    var ciphertext = plaintext
    var tag = AuthenticationTag()
    var context: [UInt8] = []
    context.appendCOSEEncryptionContext()
    var message = ciphertext.mutableSpan
    try cryptography.aes256GCMSeal(
      key: contentKey, nonce: iv.span, authenticating: context.span, message: &message, tag: &tag)
    ciphertext.append(tag.bytes)
    var token: [UInt8] = []
    token.appendCBOR(tag: COSE.encryptTag)
    token.appendCBOR(array: 4)
    token.appendCBOR(byteStringHead: 3)
    token.appendCOSEContentHeader()
    token.appendCBOR(map: 1)
    token.appendBytes(COSE.ivLabel, iv)
    token.appendCBOR(bytes: ciphertext.span)
    token.appendCBOR(array: 1)
    token.appendCBOR(array: 3)
    token.appendCBOR(bytes: recipientProtected.span)
    token.appendCBOR(map: 1)
    token.appendCBOR(integer: COSE.ephemeralKeyLabel)
    token.appendCBOR(map: 4)
    token.appendNumber(1, 2)
    token.appendNumber(-1, 1)
    token.appendBytes(-2, Array(Array(ephemeral.publicPoint)[1..<33]))
    token.appendBytes(-3, Array(Array(ephemeral.publicPoint)[33..<65]))
    token.appendCBOR(byteStringHead: 0)
    return token
  }

  private func contentKey(
    _ ephemeral: inout P256PrivateKey, _ recipient: P256Point, _ recipientProtected: [UInt8]
  ) throws -> Secret<32> {
    var shared = Secret<32>()
    try ephemeral.agree(with: recipient, into: &shared)
    var context: [UInt8] = []
    context.appendCOSEKeyContext(recipientProtected: recipientProtected.span)
    var key = Secret<32>()
    try key.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try shared.withBytes { (input: Span<UInt8>) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: input, salt: Span(), info: context.span, into: &output)
      }
    }
    return key
  }
}

extension [UInt8] {
  fileprivate mutating func appendText(_ label: Int64, _ text: String) {
    appendCBOR(integer: label)
    appendCBOR(text: Array(text.utf8).span)
  }

  fileprivate mutating func appendNumber(_ label: Int64, _ number: UInt64) {
    appendCBOR(integer: label)
    appendCBOR(unsigned: number)
  }

  fileprivate mutating func appendBytes(_ label: Int64, _ bytes: [UInt8]) {
    appendCBOR(integer: label)
    appendCBOR(bytes: bytes.span)
  }
}
