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

  /// The same key in PEM, as `openssl pkey -pubin` writes it.
  private let pem = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMKBCTNIcKUSDii11ySs3526iDZ8A
    iTo7Tu6KPAqv7D7gS2XpJFbZiItSs3m9+9Ue6GnvHw/GW2ZZaVtszggXIw==
    -----END PUBLIC KEY-----

    """

  private func key(_ bytes: [UInt8]) throws(KeyFault) -> PublicKeyJWK? { try SubjectPublicKeyInfo.publicKey(bytes) }

  @Test func `PEM and DER give the key of the JWK`() throws {
    let expected = try jwk(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#)
    #expect(try key(Array(pem.utf8)) == expected)
    #expect(try key(Array(pem.replacing("\n", with: "\r\n").utf8)) == expected)
    #expect(try key(try der) == expected)
    for text in ["", "{", " " + pem, "-----BEGIN CERTIFICATE-----"] { #expect(try key(Array(text.utf8)) == nil) }
  }

  @Test func `a cut, changed or longer key in DER or PEM is refused`() throws {
    let der = try der
    for count in 1..<der.count { #expect(throws: KeyFault.unexpected) { try key(Array(der[..<count])) } }
    #expect(throws: KeyFault.unexpected) { try key(der + [0]) }
    for index in 1..<27 {
      var changed = der
      changed[index] ^= 1
      #expect(throws: KeyFault.unexpected, "byte \(index)") { try key(changed) }
    }
    var other = der
    other[90] ^= 1
    #expect(throws: KeyFault.notOnCurve) { try key(other) }
    let text = Array(pem.utf8)
    for count in 26..<(text.count - 2) { #expect(throws: (any Error).self) { try key(Array(text[..<count])) } }
    #expect(throws: KeyFault.malformed) { try key(text + Array("more".utf8)) }
    #expect(throws: KeyFault.malformed) { try key(Array(pem.replacing("M", with: "!").utf8)) }
  }

  private var der: [UInt8] {
    get throws {
      let lines = pem.split(separator: "\n").dropFirst().dropLast()
      var der = ByteBuffer<192>()
      let text = Array(lines.joined().utf8)
      try der.append(paddedBase64: text.span)
      return [UInt8](der.bytes)
    }
  }
}
