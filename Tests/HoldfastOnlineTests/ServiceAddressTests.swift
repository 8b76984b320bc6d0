import HoldfastOnline
import Testing

@Suite struct ServiceAddressTests {
  @Test(arguments: [
    ("https://a.example", "https://a.example"), ("HTTPS://A.Example:443/", "https://a.example"),
    ("https://a.example:8443", "https://a.example:8443"), ("https://[2001:DB8::1]:444", "https://[2001:db8::1]:444"),
    ("http://127.0.0.1:8080", "http://127.0.0.1:8080"), ("http://[::1]", "http://[::1]"),
    ("http://localhost:80", "http://localhost"),
  ])
  func `an address is written in one way`(text: String, written: String) throws {
    #expect(try ServiceAddress(text).description == written)
  }

  @Test(arguments: [
    ("a.example", ServiceAddressFault.malformed), ("", .malformed), ("https://", .malformed), ("https:///", .malformed),
    ("https://:443", .malformed), ("https://a:0", .malformed), ("https://a:65536", .malformed),
    ("https://a:+1", .malformed), ("https://a:", .malformed), ("https://[::1", .malformed), ("https://[a]", .malformed),
    ("https://ä.example", .malformed), ("https://a b", .malformed), ("ftp://a", .scheme), ("://a", .scheme),
    ("http://a.example", .notEncrypted), ("http://127.0.0.2", .notEncrypted), ("http://localhost.a", .notEncrypted),
    ("https://a/b", .extraParts), ("https://a//", .extraParts), ("https://a?b", .extraParts),
    ("https://a#b", .extraParts), ("https://u@a", .extraParts), ("https://a\\b", .extraParts),
  ])
  func `anything else is refused for its reason`(text: String, fault: ServiceAddressFault) {
    #expect(throws: fault) { try ServiceAddress(text) }
  }

  @Test func `a host has up to 253 characters`() throws {
    let longest = "https://" + String(repeating: "a", count: 253)
    #expect(try ServiceAddress(longest).description == longest)
    #expect(throws: ServiceAddressFault.malformed) { try ServiceAddress(longest + "a") }
  }

  @Test func `a list keeps its order, and has each service once`() throws {
    #expect(try ServiceAddress.list("https://b,https://a").map(\.description) == ["https://b", "https://a"])
    #expect(throws: ServiceAddressFault.repeated(try ServiceAddress("https://a"))) {
      try ServiceAddress.list("https://a,https://A:443")
    }
    #expect(throws: ServiceAddressFault.malformed) { try ServiceAddress.list("https://a,") }
    let nine = (1...9).map { "https://a\($0)" }.joined(separator: ",")
    #expect(throws: ServiceAddressFault.tooMany) { try ServiceAddress.list(nine) }
  }

  @Test func `a folder has no scheme`() {
    #expect(!ServiceAddress.hasScheme("service"))
    #expect(!ServiceAddress.hasScheme("/srv/https:/a"))
    #expect(ServiceAddress.hasScheme("https://a"))
    #expect(ServiceAddress.hasScheme("htp://a"))
  }

  @Test func `a pin is the base64 of 32 bytes`() {
    let pin = "sha256//" + String(repeating: "A", count: 43) + "="
    #expect(ServicePin(pin)?.description == pin)
    for other in ["sha256//", "sha256//AAAA", "sha1//" + pin.dropFirst(8), pin.dropLast() + "A", pin + ";" + pin] {
      #expect(ServicePin(String(other)) == nil)
    }
  }
}
