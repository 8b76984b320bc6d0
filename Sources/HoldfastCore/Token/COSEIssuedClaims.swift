/// A `COSE_Sign1` or a `COSE_Mac0` around a claims map, taken apart. The spans point into the decrypted token.
///
/// Source: RFC 9052 §4.2 and §6.2.
struct COSEIssuedClaims: ~Escapable {
  let protected: Span<UInt8>
  let payload: Span<UInt8>
  let seal: COSESeal
  let issuerKeyID: KeyID

  @_lifetime(copy plaintext)
  init(_ plaintext: Span<UInt8>) throws(EncodingFault) {
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
    issuerKeyID = try Self.readHeader(protected, algorithm: isMAC ? COSE.hmac256 : COSE.es256)
  }

  private static func readHeader(_ header: Span<UInt8>, algorithm: Int64) throws(EncodingFault) -> KeyID {
    var reader = CBORReader(header)
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 3 else { throw .unexpected }
    try reader.label(COSE.algorithmLabel, &order)
    guard try reader.integer() == algorithm else { throw .unexpected }
    try reader.label(COSE.keyIDLabel, &order)
    let keyID: KeyID = try reader.fixedBytes()
    try reader.label(COSE.typeLabel, &order)
    guard try reader.textString().elementsEqual(COSE.measurementTokenType) else { throw .unexpected }
    try reader.finish()
    return keyID
  }
}

/// What shows whose claims they are.
enum COSESeal {
  /// r ‖ s of ES256.
  case signature(FixedBytes<64>)
  /// The tag of HMAC 256/256.
  case mac(FixedBytes<32>)
}
