import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct JWSTests {
  private let type = "holdfast-at+jwt"

  /// The verifying key of a peer's token.
  private func key(of token: PeerToken) throws -> JWSKey {
    let json = (token.value["key"] ?? .null).compact()
    let key = try JWK.parse(json.span)
    guard token.algorithm == "ES256" else { return .hs256(try key.octets()) }
    let point = try key.publicPoint()
    return .es256Public(P256Point(point.span)!)
  }

  private func verify(_ text: [UInt8], with key: borrowing JWSKey, type: String) throws -> String {
    var cryptography = OpenSSLCryptography()
    let payload = try key.verify(text.span, type: type, using: &cryptography)
    return payload.bytes.text
  }

  private func verify(_ token: PeerToken, _ text: [UInt8], type: String = "holdfast-at+jwt") throws -> String {
    try verify(text, with: key(of: token), type: type)
  }

  @Test func `signatures of two peers verify`() throws {
    let tokens = try PeerToken.signed()
    #expect(tokens.count == 4)
    for token in tokens { #expect(try verify(token, Array(token.token.utf8)) == token.plaintext, "\(token.name)") }
  }

  @Test func `a changed character of any part is refused`() throws {
    for token in try PeerToken.signed() {
      let text = Array(token.token.utf8)
      for index in text.indices where text[index] != UInt8(ascii: ".") {
        var changed = text
        changed[index] = changed[index] == UInt8(ascii: "Q") ? UInt8(ascii: "R") : UInt8(ascii: "Q")
        #expect(throws: JOSEFault.self, "\(token.name) \(index)") { try verify(token, changed) }
      }
    }
  }

  @Test func `another algorithm than the key's is refused, none above all`() throws {
    for token in try PeerToken.signed() {
      for algorithm in ["none", "None", "HS256", "ES256", "HS512", "RS256"] where algorithm != token.algorithm {
        let changed = try token.withHeader("alg", .string(algorithm))
        #expect(throws: JOSEFault.unexpected) { try verify(token, changed) }
      }
    }
  }

  @Test func `another type is refused`() throws {
    let token = try PeerToken.signed()[0]
    #expect(throws: JOSEFault.unexpected) {
      try verify(token, Array(token.token.utf8), type: "holdfast-mt+jwt")
    }
  }

  @Test func `a secret of fewer than 32 bytes neither signs nor verifies`() throws {
    var cryptography = OpenSSLCryptography()
    var key = JWSKey.hs256(SecretBytes(zeros: 31))
    #expect(throws: JOSEFault.unexpected) { _ = try key.sign([1].span, type: type, using: &cryptography) }
  }

  @Test func `a code cut short is refused, however right it is, and so is a short secret`() throws {
    var cryptography = OpenSSLCryptography()
    var key = JWSKey.hs256(SecretBytes(zeros: 32))
    let signed = try array(key.sign(Array("{}".utf8).span, type: type, using: &cryptography))
    let dot = try #require(signed.lastIndex(of: UInt8(ascii: ".")))
    let input = Array(signed[..<dot])
    for (secret, count) in [(32, 31), (32, 16), (32, 10), (31, 32)] {
      let bytes = [UInt8](repeating: 0, count: secret)
      var code = [UInt8](repeating: 0, count: count)
      var span = code.mutableSpan
      try HMAC.sha256.authenticate(input.span, key: bytes.span, into: &span)
      let text = input + Array(".\(base64URL(code.span))".utf8)
      #expect(throws: JOSEFault.unexpected) { try verify(text, with: .hs256(SecretBytes(zeros: secret)), type: type) }
    }
    #expect(try verify(signed, with: key, type: type) == "{}")
  }

  @Test func `a key id that is not the key's is refused`() throws {
    var key = try P256PrivateKey()
    let point = key.publicPoint
    var cryptography = OpenSSLCryptography()
    let ownID = try keyID(of: point, using: &cryptography)
    let own = base64URL(ownID.bytes)
    for (id, isRight) in [(own, true), ("AAAAAAAAAAA", false), ("", false)] {
      let header = Array(#"{"alg":"ES256","kid":"\#(id)","typ":"\#(type)"}"#.utf8)
      let input = base64URL(header.span) + ".e30"
      var hash = cryptography.sha256()
      hash.append(Array(input.utf8).span)
      let signature = try key.sign(try hash.finish())
      let text = Array("\(input).\(base64URL(signature.bytes))".utf8)
      if isRight {
        #expect(try verify(text, with: .es256Public(point), type: type) == "{}")
      } else {
        #expect(throws: JOSEFault.unexpected) { try verify(text, with: .es256Public(point), type: type) }
      }
    }
  }

  @Test func `both algorithms verify what they sign, and the public half does not sign`() throws {
    var cryptography = OpenSSLCryptography()
    let payload = Array(#"{"a":1}"#.utf8)
    var symmetric = JWSKey.hs256(SecretBytes(zeros: 32))
    let code = try array(symmetric.sign(payload.span, type: type, using: &cryptography))
    #expect(try verify(code, with: symmetric, type: type) == #"{"a":1}"#)
    let pair = try P256PrivateKey()
    let point = pair.publicPoint
    var signing = JWSKey.es256(pair)
    let signed = try array(signing.sign(payload.span, type: type, using: &cryptography))
    var verifying = JWSKey.es256Public(point)
    #expect(try verify(signed, with: verifying, type: type) == #"{"a":1}"#)
    #expect(try verify(signed, with: signing, type: type) == #"{"a":1}"#)
    #expect(throws: JOSEFault.unexpected) {
      _ = try verifying.sign(payload.span, type: type, using: &cryptography)
    }
    #expect(throws: JOSEFault.unexpected) { try verify(signed, with: symmetric, type: type) }
  }

  private func array(_ text: borrowing JWSText) -> [UInt8] { text.bytes.array }
}
