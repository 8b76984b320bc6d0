import HoldfastOpenSSL
import TestSupport

import HoldfastCore

extension ComputedExample {
  /// The token anew, but for its ECDSA signature, which is taken from the example's token, once it was verified.
  mutating func makeJOSEToken() throws {
    let signature = try opened(Array(inputs.text("jose.token").utf8), .jose).suffix(86)
    let point = [UInt8](try P256PrivateKey(scalar: secret(self["ephemeral-private"])).publicPoint.bytes)
    let header = """
      {"alg": "ECDH-ES", "enc": "A256GCM", "cty": "JWT", "kid": "\(base64URL(self["device-kid"]))", \
      "epk": {"kty": "EC", "crv": "P-256", "x": "\(base64URL(point[1..<33]))", "y": "\(base64URL(point[33...]))"}}
      """
    let signatureHeader = """
      {"alg": "ES256", "typ": "holdfast-mt+jwt", "kid": "\(base64URL(self["issuer-kid"]))"}
      """
    let claims = """
      {"iss": "issuer.example", "sub": "app", "aud": "\(base64URL(self["device-id"]))", "exp": \(Self.expires), \
      "iat": \(Self.created), "jti": "\(base64URL(Self.tokenID))", "imh": "\(paddedBase64(self["im"]))", \
      "dmh": "\(paddedBase64(self["dm"]))", "mpk": "\(paddedBase64(self["mpk"]))", "gen": 1}
      """
    self["jose-encryption-header"] = Array(header.utf8)
    self["jose-signature-header"] = Array(signatureHeader.utf8)
    self["jose-claims"] = Array(claims.utf8)
    self["jose-content-key"] = try joseContentKey()
    let signed = [
      base64URL(signatureHeader.utf8), base64URL(claims.utf8), String(decoding: signature, as: UTF8.self),
    ].joined(separator: ".")
    let authenticated = base64URL(header.utf8)
    let sealed = try seal(
      Array(signed.utf8), key: self["jose-content-key"], authenticating: Array(authenticated.utf8))
    let token = [
      authenticated, "", base64URL(self["iv"]), base64URL(sealed.dropLast(16)), base64URL(sealed.suffix(16)),
    ].joined(separator: ".")
    self["jose-token"] = Array(token.utf8)
  }

  private mutating func joseContentKey() throws -> [UInt8] {
    let iv = Array(base64URL(self["iv"]).utf8)
    let header = self["jose-encryption-header"]
    let envelope = try JOSEEnvelope(header: try JOSEHeader(header.span), encryptedKey: Span(), iv: iv.span)
    let key = try envelope.contentKey(from: secret(self["shared-secret"]), using: &cryptography)
    return key.withBytes { [UInt8]($0) }
  }
}

func base64URL(_ bytes: some Sequence<UInt8>) -> String {
  let bytes = Array(bytes)
  var text: [UInt8] = []
  text.append(asBase64URL: bytes.span)
  return String(decoding: text, as: UTF8.self)
}

func paddedBase64(_ bytes: [UInt8]) -> String {
  var text: [UInt8] = []
  text.append(asPaddedBase64: bytes.span)
  return String(decoding: text, as: UTF8.self)
}
