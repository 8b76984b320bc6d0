import HoldfastOpenSSL
import TestSupport

import HoldfastCore

extension ComputedExample {
  /// The claims of the COSE token in a `COSE_Mac0`, under a key that follows from a secret of the issuer's.
  mutating func makeMACClaims() throws {
    self["mac-secret"] = [UInt8](repeating: 0x65, count: 32)
    var info: [UInt8] = []
    info.append(domain: "holdfast/1 mac key")
    info += self["device-id"] + self["device-point"]
    var key = [UInt8](repeating: 0, count: 32)
    var output = key.mutableSpan
    try cryptography.hkdfSHA256(inputKey: self["mac-secret"].span, salt: Span(), info: info.span, into: &output)
    self["mac-key"] = key
    self["mac-kid"] = [UInt8](try keyID(of: .mac(secret(key)), using: &cryptography).bytes)
    var header: [UInt8] = []
    header.appendCBOR(map: 3)
    header.appendCBOR(integer: COSE.algorithmLabel)
    header.appendCBOR(integer: COSE.hmac256)
    header.appendCBOR(integer: COSE.keyIDLabel)
    header.appendCBOR(bytes: self["mac-kid"].span)
    header.appendCBOR(integer: COSE.typeLabel)
    header.appendCBOR(text: COSE.measurementTokenType)
    var mac = try cryptography.hmacSHA256(key: key.span)
    mac.appendCOSEClaimsContext(COSE.macContext, protected: header.span, payload: self["claims"].span)
    var message: [UInt8] = []
    message.appendCBOR(tag: COSE.mac0Tag)
    message.appendCBOR(array: 4)
    message.appendCBOR(bytes: header.span)
    message.appendCBOR(map: 0)
    message.appendCBOR(bytes: self["claims"].span)
    message.appendCBOR(bytes: (try mac.finish() as MAC).bytes)
    self["mac-claims"] = message
  }
}
