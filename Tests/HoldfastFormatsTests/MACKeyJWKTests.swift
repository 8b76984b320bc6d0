import HoldfastCore
import Testing

import HoldfastFormats

@Suite struct MACKeyJWKTests {
  private let good = #"{"kty":"oct","k":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8","alg":"HS256","use":"sig"}"#

  private func decode(_ text: String) throws -> [UInt8] {
    let utf8 = Array(text.utf8)
    return try MACKeyJWK.decode(utf8.span).withBytes { bytes in bytes.indices.map { bytes[$0] } }
  }

  @Test func `a key is read as it was written`() throws {
    #expect(try decode(good) == [UInt8](0..<32))
    let key = try MACKeyJWK.decode(Array(good.utf8).span)
    var text = ByteBuffer<512>()
    try MACKeyJWK.encode(key, into: &text)
    let written = text.bytes
    #expect(String(decoding: written.indices.map { written[$0] }, as: UTF8.self) == good + "\n")
  }

  @Test(
    arguments: [
      (#""kty":"oct""#, #""kty":"EC""#), (#""kty":"oct","#, ""), (#""alg":"HS256""#, #""alg":"HS512""#),
      (#""alg":"HS256""#, #""alg":"ES256""#), (#""alg":"HS256","#, ""), (#","use":"sig""#, ""),
      (#""use":"sig""#, #""use":"enc""#), ("Hh8", "Hg"), ("Hh8", "Hh8A"), ("AAEC", ""), (#""k":"#, #""d":"#),
      (#"{"kty""#, #"{"kid":"a","kty""#), (#""use":"sig""#, #""use":"sig","key_ops":["sign"]"#),
    ])
  func `no other member and no other value is taken`(part: String, other: String) throws {
    let text = good.replacing(part, with: other)
    #expect(text != good)
    #expect(throws: KeyFault.self) { try decode(text) }
  }

  @Test func `what is not strict JSON or base64url is malformed`() {
    for text in [
      "", good + "x", "[]", good.replacing("Hh8", with: "Hh9"), good.replacing("Hh8", with: "Hh8="),
      good.replacing(#""use""#, with: #""kty":"oct","use""#),
    ] {
      #expect(throws: KeyFault.self) { try decode(text) }
    }
  }

  @Test func `a symmetric key is known as one whatever else is wrong with it, and no other JWK is`() {
    func isSymmetric(_ text: String) -> Bool { MACKeyJWK.isSymmetricKey(Array(text.utf8).span) }
    #expect(isSymmetric(good))
    #expect(isSymmetric(#"{"a":[1],"k":"","kty":"oct"}"#))
    #expect(!isSymmetric(#"{"kty":"EC"}"#))
    #expect(!isSymmetric(#"{"issuer":{"kty":"oct"}}"#))
    #expect(!isSymmetric("oct"))
  }
}
