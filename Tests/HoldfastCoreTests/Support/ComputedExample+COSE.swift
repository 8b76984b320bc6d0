import HoldfastOpenSSL
import TestSupport

import HoldfastCore

extension ComputedExample {
  static let expires = created + 3600
  /// `jti`, which the example's issuer drew.
  static let tokenID = hex("4ad2d4849af619f406c0d58ba8a10626")

  /// The token anew, but for its ECDSA signature: that is taken from the example's token, once it was verified.
  mutating func makeCOSEToken() throws {
    let given = inputs.bytes("cose.token")
    let signature = try opened(given, .cose).suffix(64)
    self["claims"] = claimsMap()
    self["signed-claims"] = signedClaims(Array(signature))
    var protected: [UInt8] = []
    protected.appendCBOR(map: 2)
    protected.appendCBOR(integer: COSE.algorithmLabel)
    protected.appendCBOR(integer: COSE.ecdhHKDF256)
    protected.appendCBOR(integer: COSE.keyIDLabel)
    protected.appendCBOR(bytes: self["device-kid"].span)
    var context: [UInt8] = []
    context.appendCOSEKeyContext(recipientProtected: protected.span)
    self["kdf-context"] = context
    var key = [UInt8](repeating: 0, count: 32)
    var output = key.mutableSpan
    try cryptography.hkdfSHA256(
      inputKey: self["shared-secret"].span, salt: Span(), info: context.span, into: &output)
    self["content-key"] = key
    var authenticated: [UInt8] = []
    authenticated.appendCOSEEncryptionContext()
    let ciphertext = try seal(self["signed-claims"], key: key, authenticating: authenticated)
    self["token"] = try envelope(ciphertext, protected: protected)
  }

  private func claimsMap() -> [UInt8] {
    var map: [UInt8] = []
    map.appendCBOR(map: 10)
    map.appendCBOR(integer: Claim.issuer.label)
    map.appendCBOR(text: "issuer.example")
    map.appendCBOR(integer: Claim.subject.label)
    map.appendCBOR(text: "app")
    map.appendCBOR(integer: Claim.audience.label)
    map.appendCBOR(text: Array(base64URL(self["device-id"]).utf8).span)
    map.appendCBOR(integer: Claim.expires.label)
    map.appendCBOR(unsigned: Self.expires)
    map.appendCBOR(integer: Claim.issuedAt.label)
    map.appendCBOR(unsigned: Self.created)
    map.appendCBOR(integer: Claim.tokenID.label)
    map.appendCBOR(bytes: Self.tokenID.span)
    for (label, value) in [
      (Claim.integrity.label, "im"), (Claim.device.label, "dm"), (Claim.proofKey.label, "mpk"),
    ] {
      map.appendCBOR(integer: label)
      map.appendCBOR(bytes: self[value].span)
    }
    map.appendCBOR(integer: Claim.generation.label)
    map.appendCBOR(unsigned: 1)
    return map
  }

  private func signedClaims(_ signature: [UInt8]) -> [UInt8] {
    var header: [UInt8] = []
    header.appendCBOR(map: 3)
    header.appendCBOR(integer: COSE.algorithmLabel)
    header.appendCBOR(integer: COSE.es256)
    header.appendCBOR(integer: COSE.keyIDLabel)
    header.appendCBOR(bytes: self["issuer-kid"].span)
    header.appendCBOR(integer: COSE.typeLabel)
    header.appendCBOR(text: COSE.measurementTokenType)
    var signed: [UInt8] = []
    signed.appendCBOR(tag: COSE.sign1Tag)
    signed.appendCBOR(array: 4)
    signed.appendCBOR(bytes: header.span)
    signed.appendCBOR(map: 0)
    signed.appendCBOR(bytes: self["claims"].span)
    signed.appendCBOR(bytes: signature.span)
    return signed
  }

  private func envelope(_ ciphertext: [UInt8], protected: [UInt8]) throws -> [UInt8] {
    let point = try P256PrivateKey(scalar: secret(self["ephemeral-private"])).publicPoint
    var token: [UInt8] = []
    token.appendCBOR(tag: COSE.encryptTag)
    token.appendCBOR(array: 4)
    token.appendCBOR(byteStringHead: 3)
    token.appendCOSEContentHeader()
    token.appendCBOR(map: 1)
    token.appendCBOR(integer: COSE.ivLabel)
    token.appendCBOR(bytes: self["iv"].span)
    token.appendCBOR(bytes: ciphertext.span)
    token.appendCBOR(array: 1)
    token.appendCBOR(array: 3)
    token.appendCBOR(bytes: protected.span)
    token.appendCBOR(map: 1)
    token.appendCBOR(integer: COSE.ephemeralKeyLabel)
    token.appendCBOR(map: 4)
    token.appendCBOR(unsigned: 1)
    token.appendCBOR(unsigned: 2)
    token.appendCBOR(integer: -1)
    token.appendCBOR(unsigned: 1)
    token.appendCBOR(integer: -2)
    token.appendCBOR(bytes: point.bytes.extracting(1..<33))
    token.appendCBOR(integer: -3)
    token.appendCBOR(bytes: point.bytes.extracting(33..<65))
    token.appendCBOR(byteStringHead: 0)
    return token
  }
}
