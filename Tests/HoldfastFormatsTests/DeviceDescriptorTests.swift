import HoldfastCore
import HoldfastFormats
import Testing

@Suite struct DeviceDescriptorTests {
  /// The example of RFC 7517 §A.1.
  private let x = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
  private let y = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"

  private func jwk(_ text: String) throws(KeyFault) -> PublicKeyJWK {
    try PublicKeyJWK(json: Array(text.utf8))
  }

  @Test func `a descriptor whose key id is not its key's is refused`() throws {
    let descriptor = try DeviceDescriptor(
      deviceID: try #require(fixedBytes(hexadecimal: String(repeating: "ab", count: 16))),
      publicPoint: jwk(#"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"#).point)
    #expect(try DeviceDescriptor(json: descriptor.json.compact()) == descriptor)
    #expect(descriptor.json["device_id"]?.text == String(repeating: "ab", count: 16))
    for (name, value) in [
      ("kid", "0011223344556677"), ("device_id", "AB"), ("device_id", String(repeating: "ab", count: 15)),
      ("device_id", String(repeating: "AB", count: 16)),
    ] {
      let members = try #require(descriptor.json.members).map { $0.0 == name ? (name, .string(value)) : $0 }
      #expect(throws: KeyFault.unexpected) { try DeviceDescriptor(json: JSONValue.object(members).compact()) }
    }
    let more = try #require(descriptor.json.members) + [("more", .null)]
    #expect(throws: KeyFault.unexpected) { try DeviceDescriptor(json: JSONValue.object(more).compact()) }
  }
}
