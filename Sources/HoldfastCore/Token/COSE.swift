/// The constants of COSE in a measurement token.
///
/// Source: RFC 9052 §3.1, §4.4 and §6.3, RFC 9053 §2.1, §3.1, §4.1 and §6.3, RFC 9596 §2 (`typ`).
package enum COSE {
  /// The CBOR tag of `COSE_Encrypt`.
  package static let encryptTag: UInt64 = 96
  /// The CBOR tag of `COSE_Sign1`.
  package static let sign1Tag: UInt64 = 18
  /// The CBOR tag of `COSE_Mac0`.
  package static let mac0Tag: UInt64 = 17
  /// The header label of the algorithm, `alg`.
  package static let algorithmLabel: Int64 = 1
  /// The header label of the key id, `kid`.
  package static let keyIDLabel: Int64 = 4
  /// The header label of the initialisation vector, `IV`.
  package static let ivLabel: Int64 = 5
  /// The header label of the type, `typ`.
  package static let typeLabel: Int64 = 16
  /// The header label of the sender's ephemeral key.
  package static let ephemeralKeyLabel: Int64 = -1
  /// The algorithm ES256.
  package static let es256: Int64 = -7
  /// The algorithm HMAC with SHA-256 and the whole tag of 32 bytes.
  package static let hmac256: Int64 = 5
  /// The algorithm ECDH-ES + HKDF-256.
  package static let ecdhHKDF256: Int64 = -25
  /// The algorithm AES-256 in GCM with a 16-byte tag.
  package static let aes256GCM: Int64 = 3
  /// The `typ` of a measurement token.
  package static let measurementTokenType: StaticString = "holdfast-mt"
  /// The `typ` of a bulletin.
  package static let bulletinType: StaticString = "holdfast-bulletin"
  /// The `typ` of a receipt for entries of an audit log.
  package static let receiptType: StaticString = "holdfast-receipt"
  /// The text that begins the bytes under a signature of `COSE_Sign1`.
  package static let signatureContext: StaticString = "Signature1"
  /// The text that begins the bytes under the tag of `COSE_Mac0`.
  package static let macContext: StaticString = "MAC0"
}

extension ByteSink where Self: ~Copyable {
  /// Writes the bytes that AES-GCM authenticates in addition to the ciphertext: `Enc_structure` with the protected
  /// header `{1: 3}`.
  ///
  /// Source: RFC 9052 §5.3.
  package mutating func appendCOSEEncryptionContext() throws(Failure) {
    try appendCBOR(array: 3)
    try appendCBOR(text: "Encrypt")
    try appendCBOR(byteStringHead: 3)
    try appendCOSEContentHeader()
    try appendCBOR(byteStringHead: 0)
  }

  /// Writes the protected header of the content, `{1: 3}`: three bytes.
  package mutating func appendCOSEContentHeader() throws(Failure) {
    try appendCBOR(map: 1)
    try appendCBOR(integer: COSE.algorithmLabel)
    try appendCBOR(integer: COSE.aes256GCM)
  }

  /// Writes `COSE_KDF_Context` for a 256-bit content key with null parties.
  ///
  /// Source: RFC 9053 §5.2. `recipientProtected` is the recipient's protected header as it is in the token.
  package mutating func appendCOSEKeyContext(recipientProtected: Span<UInt8>) throws(Failure) {
    try appendCBOR(array: 4)
    try appendCBOR(integer: COSE.aes256GCM)
    for _ in 0..<2 {
      try appendCBOR(array: 3)
      for _ in 0..<3 { try appendCBORNull() }
    }
    try appendCBOR(array: 2)
    try appendCBOR(unsigned: 256)
    try appendCBOR(bytes: recipientProtected)
  }

  /// Writes the bytes that an issuer signs or authenticates: `Sig_structure` of a `COSE_Sign1` or `MAC_structure` of a
  /// `COSE_Mac0`, without external data.
  ///
  /// Source: RFC 9052 §4.4 and §6.3. `context` is ``COSE/signatureContext`` or ``COSE/macContext``.
  package mutating func appendCOSEClaimsContext(
    _ context: StaticString, protected: Span<UInt8>, payload: Span<UInt8>
  ) throws(Failure) {
    try appendCBOR(array: 4)
    try appendCBOR(text: context)
    try appendCBOR(bytes: protected)
    try appendCBOR(byteStringHead: 0)
    try appendCBOR(bytes: payload)
  }
}

/// A `COSE_Encrypt` with one ECDH-ES recipient, split into its parts. The spans point into the token.
///
/// Source: RFC 9052 §5.1, RFC 9053 §6.3.1. Header maps hold exactly the labels that docs/protocol.md names under COSE.
struct COSEEnvelope: ~Escapable {
  /// The initialisation vector, 12 bytes.
  let iv: Span<UInt8>
  /// The ciphertext, at least 16 bytes, of which the last 16 are the tag.
  let ciphertext: Span<UInt8>
  let recipientProtected: Span<UInt8>
  let recipientKeyID: KeyID
  let ephemeralPoint: P256Point

  @_lifetime(copy token)
  init(_ token: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(token)
    try reader.tag(COSE.encryptTag)
    try reader.array(of: 4)
    try Self.checkContentHeader(try reader.byteString())
    iv = try Self.readIV(&reader)
    ciphertext = try reader.byteString()
    guard ciphertext.count >= 16 else { throw .unexpected }
    try reader.array(of: 1)
    try reader.array(of: 3)
    recipientProtected = try reader.byteString()
    recipientKeyID = try Self.readRecipientHeader(recipientProtected)
    ephemeralPoint = try Self.readEphemeralPoint(&reader)
    guard try reader.byteString().isEmpty else { throw .unexpected }
    try reader.finish()
  }

  private static func checkContentHeader(_ header: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(header)
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 1 else { throw .unexpected }
    try reader.label(COSE.algorithmLabel, &order)
    guard try reader.integer() == COSE.aes256GCM else { throw .unexpected }
    try reader.finish()
  }

  @_lifetime(copy reader)
  private static func readIV(_ reader: inout CBORReader) throws(EncodingFault) -> Span<UInt8> {
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 1 else { throw .unexpected }
    try reader.label(COSE.ivLabel, &order)
    let iv = try reader.byteString()
    guard iv.count == 12 else { throw .unexpected }
    return iv
  }

  private static func readRecipientHeader(_ header: Span<UInt8>) throws(EncodingFault) -> KeyID {
    var reader = CBORReader(header)
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 2 else { throw .unexpected }
    try reader.label(COSE.algorithmLabel, &order)
    guard try reader.integer() == COSE.ecdhHKDF256 else { throw .unexpected }
    try reader.label(COSE.keyIDLabel, &order)
    let keyID: KeyID = try reader.fixedBytes()
    try reader.finish()
    return keyID
  }

  /// Reads `{-1: {1: 2, -1: 1, -2: x, -3: y}}`: an EC2 key on P-256 (RFC 9053 §7.1.1).
  private static func readEphemeralPoint(_ reader: inout CBORReader) throws(EncodingFault) -> P256Point {
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 1 else { throw .unexpected }
    try reader.label(COSE.ephemeralKeyLabel, &order)
    var keyOrder = CBORLabelOrder()
    guard try reader.mapHead() == 4 else { throw .unexpected }
    try reader.label(1, &keyOrder)
    guard try reader.integer() == 2 else { throw .unexpected }
    try reader.label(-1, &keyOrder)
    guard try reader.integer() == 1 else { throw .unexpected }
    try reader.label(-2, &keyOrder)
    let x: FixedBytes<32> = try reader.fixedBytes()
    try reader.label(-3, &keyOrder)
    let y: FixedBytes<32> = try reader.fixedBytes()
    return P256Point(x: x, y: y)
  }
}

/// A `COSE_Sign1` or a `COSE_Mac0` around a claims map, split into its parts. The spans point into the decrypted token or the bulletin.
///
/// Source: RFC 9052 §4.2 and §6.2.
struct COSEIssuedClaims: ~Escapable {
  let protected: Span<UInt8>
  let payload: Span<UInt8>
  let seal: COSESeal
  let issuerKeyID: KeyID

  /// Splits a message whose header has the `typ` given.
  @_lifetime(copy plaintext)
  init(_ plaintext: Span<UInt8>, type: StaticString = COSE.measurementTokenType) throws(EncodingFault) {
    var reader = CBORReader(plaintext)
    let tag = try reader.tag()
    guard tag == COSE.sign1Tag || tag == COSE.mac0Tag else { throw .unexpected }
    let isMAC = tag == COSE.mac0Tag
    try reader.array(of: 4)
    protected = try reader.byteString()
    guard try reader.mapHead() == 0 else { throw .unexpected }
    payload = try reader.byteString()
    seal = isMAC ? .mac(try reader.fixedBytes()) : .signature(try reader.fixedBytes())
    try reader.finish()
    issuerKeyID = try Self.readHeader(protected, algorithm: isMAC ? COSE.hmac256 : COSE.es256, type: type)
  }

  private static func readHeader(
    _ header: Span<UInt8>, algorithm: Int64, type: StaticString
  ) throws(EncodingFault) -> KeyID {
    var reader = CBORReader(header)
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 3 else { throw .unexpected }
    try reader.label(COSE.algorithmLabel, &order)
    guard try reader.integer() == algorithm else { throw .unexpected }
    try reader.label(COSE.keyIDLabel, &order)
    let keyID: KeyID = try reader.fixedBytes()
    try reader.label(COSE.typeLabel, &order)
    guard try reader.textString().elementsEqual(type) else { throw .unexpected }
    try reader.finish()
    return keyID
  }

  /// Whether the claims are signed, and not authenticated with a tag.
  var isSigned: Bool { if case .signature = seal { true } else { false } }

  /// Checks the signature over the claims.
  ///
  /// - Parameters:
  ///   - key: the public key of the signer.
  ///   - cryptography: an implementation of the primitives.
  @inline(never)
  func verify<Crypto: Cryptography & ~Copyable>(
    by key: P256Point, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    guard case .signature(let signature) = seal else { throw CryptographyFailure() }
    var hash = try cryptography.sha256()
    hash.appendCOSEClaimsContext(COSE.signatureContext, protected: protected, payload: payload)
    try cryptography.p256Verify(key: key, digest: try hash.finish(), signature: signature)
  }
}

/// The signature or the tag that authenticates the claims.
enum COSESeal {
  /// The signature of ES256, r ‖ s, 64 bytes.
  case signature(FixedBytes<64>)
  /// The tag of HMAC 256/256, 32 bytes.
  case mac(FixedBytes<32>)
}
