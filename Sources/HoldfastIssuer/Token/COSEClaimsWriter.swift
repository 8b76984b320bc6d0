import HoldfastCore

/// The bytes that an issuer's `COSE_Sign1` or `COSE_Mac0` is made of.
///
/// Source: RFC 9052 §4.2, §4.4, §6.2 and §6.3.
struct COSEClaimsWriter {
  let keyID: KeyID
  let isMAC: Bool

  /// The protected header `{1: -7 or 5, 4: kid, 16: "holdfast-mt"}`.
  func protectedHeader() -> [UInt8] {
    var header: [UInt8] = []
    header.appendCBOR(map: 3)
    header.appendCBOR(integer: COSE.algorithmLabel)
    header.appendCBOR(integer: isMAC ? COSE.hmac256 : COSE.es256)
    header.appendCBOR(integer: COSE.keyIDLabel)
    header.appendCBOR(bytes: keyID.bytes)
    header.appendCBOR(integer: COSE.typeLabel)
    header.appendCBOR(text: COSE.measurementTokenType)
    return header
  }

  /// Puts what is signed or authenticated into a hash or a MAC.
  func append<Sink: ByteSink & ~Copyable>(contextOf payload: Span<UInt8>, to sink: inout Sink) throws(Sink.Failure) {
    let header = protectedHeader()
    try sink.appendCOSEClaimsContext(
      isMAC ? COSE.macContext : COSE.signatureContext, protected: header.span, payload: payload)
  }

  /// The whole message; `seal` is the signature of 64 bytes or the MAC's tag of 32.
  func message(payload: Span<UInt8>, seal: Span<UInt8>) throws(EncodingFault) -> COSEText {
    let header = protectedHeader()
    var text = COSEText()
    try text.appendCBOR(tag: isMAC ? COSE.mac0Tag : COSE.sign1Tag)
    try text.appendCBOR(array: 4)
    try text.appendCBOR(bytes: header.span)
    try text.appendCBOR(map: 0)
    try text.appendCBOR(bytes: payload)
    try text.appendCBOR(bytes: seal)
    return text
  }
}
