/// A `COSE_Encrypt` with one ECDH-ES recipient, taken apart. The spans point into the token.
///
/// Source: RFC 9052 §5.1, RFC 9053 §6.3.1. Header maps hold exactly the labels that docs/protocol.md names under COSE.
struct COSEEnvelope: ~Escapable {
  /// 12 bytes.
  let iv: Span<UInt8>
  /// At least 16 bytes; the last 16 are the tag.
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
