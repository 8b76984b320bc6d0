import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastDevice

@Suite struct DeviceKeyFileTests {
  /// The example of RFC 7517 §A.1.
  private let x = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
  private let y = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
  /// Its private half, from RFC 7517 §A.2.
  private let d = "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"

  private func decode(_ text: String) throws -> P256PrivateKey {
    let bytes = Array(text.utf8)
    return try P256PrivateKey(scalar: DeviceKeyFile.decode(bytes.span))
  }

  @Test func `a private key is written and read back`() throws {
    let key = try decode(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)","d":"\#(d)"}"#)
    var text = ByteBuffer<512>()
    try DeviceKeyFile.encode(key, into: &text)
    #expect(
      Array(text.bytes)
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
}
