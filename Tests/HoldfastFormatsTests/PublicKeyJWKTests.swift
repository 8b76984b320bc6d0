import HoldfastCore
import HoldfastFormats
import Testing

@Suite struct PublicKeyJWKTests {
  /// The example of RFC 7517 §A.1.
  private let x = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
  private let y = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
  /// Its private half, from RFC 7517 §A.2.
  private let d = "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"

  private func jwk(_ text: String) throws(KeyFault) -> PublicKeyJWK {
    try PublicKeyJWK(json: Array(text.utf8))
  }

  @Test func `a public JWK is read, whatever else it says, and written back`() throws {
    let key = try jwk(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","use":"enc","kid":"1"}"#)
    #expect(key.json.compact() == Array(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#.utf8))
    #expect(try PublicKeyJWK(key.json) == key)
  }

  @Test func `a private key is no issuer`() {
    #expect(throws: KeyFault.privateKey) {
      try jwk(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","d":"\#(d)"}"#)
    }
  }

  @Test func `a point off the curve is refused`() {
    #expect(throws: KeyFault.notOnCurve) { try jwk(#"{"kty":"EC","crv":"P-256","x":"\#(y)","y":"\#(x)"}"#) }
  }

  @Test func `other keys and other encodings are refused`() {
    for text in [
      #"{"kty":"RSA","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#, #"{"kty":"EC","crv":"P-384","x":"\#(x)","y":"\#(y)"}"#,
      #"{"kty":"EC","crv":"P-256","x":"\#(x)"}"#, #"{"kty":"EC","crv":"P-256","x":"\#(x)=","y":"\#(y)"}"#,
      #"{"kty":"EC","crv":"P-256","x":"\#(x)AA","y":"\#(y)"}"#, #"{"kty":"EC","crv":"P-256","x":1,"y":"\#(y)"}"#, "[]",
    ] {
      #expect(throws: KeyFault.unexpected) { try jwk(text) }
    }
    #expect(throws: KeyFault.malformed) { try jwk("{") }
  }
}
