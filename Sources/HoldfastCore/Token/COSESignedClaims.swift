/// A `COSE_Sign1` around a claims map, taken apart. The spans point into the decrypted token.
///
/// Source: RFC 9052 §4.2.
struct COSESignedClaims: ~Escapable {
  let protected: Span<UInt8>
  let payload: Span<UInt8>
  /// r ‖ s.
  let signature: FixedBytes<64>
  let issuerKeyID: KeyID

  @_lifetime(copy plaintext)
  init(_ plaintext: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(plaintext)
    try reader.tag(COSE.sign1Tag)
    try reader.array(of: 4)
    protected = try reader.byteString()
    guard try reader.mapHead() == 0 else { throw .unexpected }
    payload = try reader.byteString()
    signature = try reader.fixedBytes()
    try reader.finish()
    issuerKeyID = try Self.readHeader(protected)
  }

  private static func readHeader(_ header: Span<UInt8>) throws(EncodingFault) -> KeyID {
    var reader = CBORReader(header)
    var order = CBORLabelOrder()
    guard try reader.mapHead() == 3 else { throw .unexpected }
    try reader.label(COSE.algorithmLabel, &order)
    guard try reader.integer() == COSE.es256 else { throw .unexpected }
    try reader.label(COSE.keyIDLabel, &order)
    let keyID: KeyID = try reader.fixedBytes()
    try reader.label(COSE.typeLabel, &order)
    guard try reader.textString().elementsEqual(COSE.measurementTokenType) else { throw .unexpected }
    try reader.finish()
    return keyID
  }
}
