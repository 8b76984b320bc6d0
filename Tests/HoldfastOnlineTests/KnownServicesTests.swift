import HoldfastFormats
import HoldfastOnline
import Testing

/// The file `services.json`: what it keeps, and what is refused as a whole.
@Suite struct KnownServicesTests {
  private let pin = "sha256//" + String(repeating: "A", count: 43) + "="

  private func read(_ text: String) throws(JSONMistake) -> KnownServices { try KnownServices(Array(text.utf8)) }

  @Test func `what is written is read again`() throws {
    var known = KnownServices()
    let (a, b) = (try ServiceAddress("https://a.example"), try ServiceAddress("https://b.example:8443"))
    known.setPins([try #require(ServicePin(pin))], of: [a])
    known.usual = ServiceAccess(
      [a, b], authorities: "/etc/ca.pem", isTrustingSystem: true, timeoutSeconds: 86_400,
      attempts: try #require(AttemptRule(retryCount: 0, pauseSeconds: 3600)))
    let again = try KnownServices(known.encoded)
    #expect(again.usual == known.usual)
    #expect(again.pins(of: a) == known.pins(of: a))
    #expect(again.pins(of: b).isEmpty)
    #expect(again.encoded == known.encoded)
  }

  @Test func `a file of version 1 has pins and no services that are usual`() throws {
    let known = try read(#"{"version":1,"pins":{"https://a.example":["\#(pin)"]}}"#)
    #expect(known.pins(of: try ServiceAddress("https://a.example")).map(\.description) == [pin])
    #expect(known.usual == nil)
    #expect(String(decoding: known.encoded, as: UTF8.self).contains(#""version": 2"#))
  }

  @Test func `the usual way is that of the usual services only`() throws {
    let known = try read(#"{"version":2,"default":{"services":["https://a.example","https://b.example"],"ca":"/ca"}}"#)
    let (a, b) = (try ServiceAddress("https://a.example"), try ServiceAddress("https://b.example"))
    #expect(known.access(to: [b])?.authorities == "/ca")
    #expect(known.access(to: [a, b]) == known.usual)
    #expect(known.access(to: [a, try ServiceAddress("https://c.example")]) == nil)
    #expect(KnownServices().access(to: [a]) == nil)
  }

  @Test func `pins are replaced together, and those of other services stay`() throws {
    let (a, b) = (try ServiceAddress("https://a.example"), try ServiceAddress("https://b.example"))
    let other = try #require(ServicePin("sha256//" + String(repeating: "/", count: 42) + "8="))
    var known = KnownServices()
    known.setPins([try #require(ServicePin(pin))], of: [a, b])
    known.setPins([other], of: [a])
    #expect(known.pins(of: a) == [other])
    #expect(known.pins(of: b).map(\.description) == [pin])
  }

  @Test(arguments: [
    "", "[]", "{}", #"{"version":3}"#, #"{"version":1}"#, #"{"version":1,"pins":[]}"#,
    #"{"version":1,"pins":{},"default":{"services":["https://a.example"]}}"#, #"{"version":2,"pinned":{}}"#,
    // No pin, or one that cannot be read, must not become a service without pins.
    #"{"version":2,"pins":{"https://a.example":[]}}"#, #"{"version":2,"pins":{"https://a.example":["sha256//AA=="]}}"#,
    #"{"version":2,"pins":{"a.example":["PIN"]}}"#, #"{"version":2,"pins":{"https://a.example":"PIN"}}"#,
    #"{"version":2,"pins":{"https://a.example":["PIN"],"HTTPS://a.example/":["PIN"]}}"#,
    #"{"version":2,"pins":{"https://a.example":["PIN","PIN","PIN","PIN","PIN","PIN","PIN","PIN","PIN"]}}"#,
    #"{"version":2,"default":{}}"#, #"{"version":2,"default":{"services":[]}}"#,
    #"{"version":2,"default":{"services":["http://a.example"]}}"#,
    #"{"version":2,"default":{"services":["https://a.example","https://a.example:443"]}}"#,
    #"{"version":2,"default":{"services":["https://a.example"],"ca":"ca.pem"}}"#,
    #"{"version":2,"default":{"services":["https://a.example"],"ca":"/a\u0000b"}}"#,
    #"{"version":2,"default":{"services":["https://a.example"],"system_ca":true}}"#,
    #"{"version":2,"default":{"services":["https://a.example"],"timeout":0}}"#,
    #"{"version":2,"default":{"services":["https://a.example"],"timeout":86401}}"#,
    #"{"version":2,"default":{"services":["https://a.example"],"retries":1001}}"#,
    #"{"version":2,"default":{"services":["https://a.example"],"pause":3601}}"#,
    #"{"version":2,"default":{"services":["https://a.example"],"pins":[]}}"#,
    #"{"version":2,"default":{"services":["https://a.example"]},"default":{"services":["https://b.example"]}}"#,
  ])
  func `nothing of a file with a mistake is used`(text: String) {
    let text = text.split(separator: "PIN", omittingEmptySubsequences: false).joined(separator: pin)
    #expect(throws: JSONMistake.self) { try read(text) }
  }

  @Test func `a mistake has a line`() {
    let mistake = #expect(throws: JSONMistake.self) {
      try read("{\n\"version\": 2,\n\"default\": {\n\"services\": [\"a\"]\n}\n}")
    }
    #expect(mistake?.line == 4)
    #expect(mistake?.pathText == "default.services[0]")
  }
}
