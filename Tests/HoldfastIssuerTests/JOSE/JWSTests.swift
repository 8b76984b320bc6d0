import HoldfastCore
import HoldfastJSON
import HoldfastOpenSSL
import Testing

@testable import HoldfastIssuer

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
