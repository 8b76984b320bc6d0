import HoldfastCore
import HoldfastJSON
import HoldfastKeys
import HoldfastOpenSSL
import Testing

@testable import HoldfastDevice

@Suite struct KeyTests {
  /// The example of RFC 7517 §A.1.
  private let x = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
  private let y = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
  /// Its private half, from RFC 7517 §A.2.
  private let d = "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"

  private func jwk(_ text: String) throws(KeyFault) -> PublicKeyJWK {
    try PublicKeyJWK(json: Array(text.utf8))
  }

  private func decode(_ text: String) throws -> P256PrivateKey {
    let bytes = Array(text.utf8)
    return try P256PrivateKey(scalar: DeviceKeyFile.decode(bytes.span))
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

  @Test func `a private key is written and read back`() throws {
    let key = try decode(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","d":"\#(d)"}"#)
    var text = ByteBuffer<512>()
    try DeviceKeyFile.encode(key, into: &text)
    #expect(
      Array(copying: text.bytes)
        == Array((#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","d":"\#(d)"}"# + "\n").utf8))
  }

  @Test func `a key file whose halves do not belong together is refused`() throws {
    #expect(throws: KeyFault.notOnCurve) {
      _ = try decode(#"{"kty":"EC","crv":"P-256","x":"\#(y)","y":"\#(x)","d":"\#(d)"}"#)
    }
    #expect(throws: KeyFault.notOnCurve) {
      _ = try decode(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","d":"\#(x)"}"#)
    }
  }

  @Test func `a key file has its five members and no other`() throws {
    for text in [
      #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#,
      #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","d":"\#(d)","kid":"1"}"#,
      #"{"kty":"EC","x":"\#(x)","y":"\#(y)","d":"\#(d)"}"#,
    ] {
      #expect(throws: KeyFault.unexpected) { _ = try decode(text) }
    }
    #expect(throws: KeyFault.malformed) {
      _ = try decode(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","d":"\#(d)","d":"\#(d)"}"#)
    }
  }

  @Test func `a descriptor whose key id is not its key's is refused`() throws {
    let descriptor = try DeviceDescriptor(
      deviceID: DeviceID(filledWith: 0xab),
      publicPoint: jwk(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#).point)
    #expect(try DeviceDescriptor(json: descriptor.json.compact()) == descriptor)
    #expect(descriptor.json["device_id"]?.text == String(repeating: "ab", count: 16))
    for (name, value) in [
      ("kid", "0011223344556677"), ("device_id", "AB"), ("device_id", String(repeating: "AB", count: 16)),
    ] {
      let members = try #require(descriptor.json.members).map { $0.0 == name ? (name, .string(value)) : $0 }
      #expect(throws: KeyFault.unexpected) { try DeviceDescriptor(json: JSONValue.object(members).compact()) }
    }
    let more = try #require(descriptor.json.members) + [("more", .null)]
    #expect(throws: KeyFault.unexpected) { try DeviceDescriptor(json: JSONValue.object(more).compact()) }
  }
}
