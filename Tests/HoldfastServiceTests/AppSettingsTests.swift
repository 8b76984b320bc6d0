import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastService
import TestSupport
import Testing

@Suite struct AppSettingsTests {
  private static let pin = "sha256//" + String(repeating: "A", count: 43) + "="

  private static func pin(_ number: UInt8) -> String {
    var text: [UInt8] = []
    text.append(asPaddedBase64: [UInt8](repeating: number, count: 32).span)
    return "sha256//" + String(decoding: text, as: UTF8.self)
  }

  @Test(arguments: TestedDatabase.installed)
  func `the configuration is signed, and its revision rises with domains, pins and features only`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    func configuration() throws -> JSONValue {
      let text = try test.fleet.configuration(services: ["https://a.example"])
      return try test.claims(.string(text), type: "holdfast-configuration+jwt")
    }
    let first = try configuration()
    #expect(
      first.members?.map(\.0)
        == ["iss", "iat", "revision", "services", "domains", "pins", "force_pins", "features"])
    #expect(first["revision"]?.number == 1 && first["force_pins"]?.number == 0)
    #expect(first["services"] == .array([.string("https://a.example")]))
    try test.addDomain("b.example", [("measurement", .bool(true))])
    try test.addDomain("a.example", [("unprotected", .bool(true))])
    _ = try test.perform("addPin", body: pinned("a.example", Self.pin(2)))
    _ = try test.perform("addPin", body: pinned("a.example", Self.pin(1)))
    _ = try test.perform("addPin", body: pinned("*", Self.pin(3)))
    try test.setFeatures { $0.secureStrings = true }
    try test.setFeatures { _ in }
    let second = try configuration()
    #expect(second["revision"]?.number == 7)
    #expect(second["domains"]?["b.example"]?["measurement"]?.flag == true)
    #expect(second["domains"]?["a.example"]?["protected"]?.flag == false)
    #expect(second["pins"]?.members?.map(\.0) == ["*", "a.example"])
    #expect(second["pins"]?["a.example"] == .array([.string(Self.pin(1)), .string(Self.pin(2))]))
    #expect(second["features"]?["secure_strings"]?.flag == true && second["features"]?["custom_tokens"]?.flag == false)
    #expect(try test.perform("forcePins", body: .object([]))["force_pins"]?.number == 8)
    #expect(try configuration()["force_pins"]?.number == 8)
    _ = try test.perform("removePin", body: pinned("a.example", Self.pin(2)))
    _ = try test.perform("removeDomain", key: "a.example")
    let last = try configuration()
    #expect(last["revision"]?.number == 10 && last["pins"]?.members?.map(\.0) == ["*"])
    #expect(try test.fetched(TestApp(salt: 1))["configuration"]?.number == 10)
    // The log of changes says what a domain is.
    let changes = try String(decoding: test.perform("listChanges").compact(), as: UTF8.self)
    let actions = try test.list("listChanges").compactMap { $0["action"]?.text }
    #expect(actions.count { $0 == "pin.add" } == 3 && actions.count { $0 == "pin.remove" } == 1)
    #expect(changes.contains(#" s, unprotected""#) && changes.contains(#" s, protected, measurement""#))
  }

  private func pinned(_ domain: String, _ pin: String) -> JSONValue {
    .object([("domain", .string(domain)), ("pin", .string(pin))])
  }

  @Test func `names, pins and counts have limits, and a change beyond them changes nothing`() throws {
    let test = try TestFleet(.sqlite)
    let label = String(repeating: "a", count: 63)
    for name in ["A.example", "a..b", ".a", "a.", "-a.b", "a-.b", "a_b", "ä.example", "*", label + "a.b", "a b"] {
      #expect(throws: AdministrationFault.conflict(.invalidDomain), "\(name)") { try test.addDomain(name) }
    }
    #expect(throws: AdministrationFault.self) {
      try test.addDomain([label, label, label, label].joined(separator: "."))
    }
    let longest = [label, label, label, String(label.dropLast(2))].joined(separator: ".")
    #expect(APIDomain.isName(longest) && !APIDomain.isName(longest + "a") && !APIDomain.isName(""))
    for pin in [
      "sha256//" + String(repeating: "A", count: 44) + "=", "sha256//" + String(repeating: "A", count: 43) + "A",
      "sha512//" + String(repeating: "A", count: 43) + "=", "sha256//" + String(repeating: "A", count: 42) + "B=",
      "sha256//" + String(repeating: "-", count: 43) + "=",
    ] {
      #expect(throws: AdministrationFault.self, "\(pin)") { try test.perform("addPin", body: pinned("*", pin)) }
    }
    #expect(throws: AdministrationFault.notFound) { try test.perform("addPin", body: pinned("a.example", Self.pin)) }
    for number in 0..<16 { _ = try test.perform("addPin", body: pinned("*", Self.pin(UInt8(number)))) }
    _ = try test.perform("addPin", body: pinned("*", Self.pin(3)))
    #expect(throws: AdministrationFault.conflict(.tooMany)) {
      try test.perform("addPin", body: pinned("*", Self.pin(16)))
    }
    for number in 0..<64 { try test.addDomain("d\(number).example") }
    try test.addDomain("d1.example", [("lifetime_seconds", .integer(10))])
    #expect(throws: AdministrationFault.conflict(.tooMany)) { try test.addDomain("d64.example") }
    #expect(try test.list("listDomains").count == 64 && test.list("listPins").count == 16)
    func set(_ number: Int) throws {
      let members = [("name", JSONValue.string("\(number)")), ("value", .string("a"))]
      _ = try test.perform("setString", body: .object(members))
    }
    for number in 0..<256 { try set(number) }
    try set(3)
    #expect(throws: AdministrationFault.conflict(.tooMany)) { try set(256) }
    #expect(try test.list("listStrings", query: [("limit", "1000")]).count == 256)
    // The largest configuration that there may be is one that apps can read.
    #expect(try test.fleet.configuration(services: []).utf8.count < 128 * 1024)
  }

  @Test(arguments: TestedDatabase.installed)
  func `secure strings come with a fetch, and no listing, log or database shows their values`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.setFeatures { $0.secureStrings = true }
    let value = "sk-secret\n\u{1F511}"
    func set(_ name: String, _ value: String) throws {
      _ = try test.perform("setString", body: .object([("name", .string(name)), ("value", .string(value))]))
    }
    try set("payment key", value)
    try set("map", "first")
    try set("map", "second")
    let strings = try test.fetched(TestApp(salt: 1)) { $0.strings = true }["strings"]
    #expect(strings == .object([("map", .string("second")), ("payment key", .string(value))]))
    #expect(try test.list("listStrings").compactMap { $0["name"]?.text } == ["map", "payment key"])
    for kind in ["listStrings", "listChanges"] {
      let text = try String(decoding: test.perform(kind).compact(), as: UTF8.self)
      #expect(!text.contains("sk-secret") && !text.contains("second"))
    }
    _ = try test.perform("removeString", key: "map", body: .object([]))
    #expect(throws: AdministrationFault.notFound) { try test.perform("removeString", key: "map") }
    #expect(try test.fetched(TestApp(salt: 1)) { $0.strings = true }["strings"]?["map"] == nil)
    for (name, value) in [("", "a"), ("a", ""), ("a\n", "a"), (String(repeating: "a", count: 65), "a")] {
      #expect(throws: AdministrationFault.self) { try set(name, value) }
    }
    #expect(throws: AdministrationFault.conflict(.tooLong)) { try set("a", String(repeating: "é", count: 2049)) }
    #expect(throws: AdministrationFault.conflict(.tooLong)) { try set(String(repeating: "é", count: 33), "a") }
    try set("a", String(repeating: "é", count: 2048))
  }

  @Test func `the key for messages follows from the account and a number, which an operator raises`() throws {
    let test = try TestFleet(.sqlite)
    #expect(try test.fetched(TestApp(salt: 1))["message_key"] == .null)
    try test.setFeatures { $0.messageSigning = true }
    func key() throws -> [UInt8] {
      try #require(try test.fetched(TestApp(salt: 1))["message_key"]?.text.flatMap { Schema.base64Bytes($0) })
    }
    let first = try key()
    #expect(first.count == 32)
    #expect(try key() == first)
    #expect(try test.secretBytes("showMessageSecret") == first)
    #expect(try test.perform("rotateMessageKey", body: .object([]))["epoch"]?.number == 2)
    #expect(try key() != first)
    #expect(try test.perform("showMessageKey")["epoch"]?.number == 2)
  }

  @Test(arguments: TestedDatabase.installed)
  func `with the development key, any program of a registered release is the app development`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.setFeatures { $0.customTokens = true }
    try test.addDomain("api.example")
    let app = TestApp(salt: 1, image: [UInt8](repeating: 9, count: 32), properties: ["debugger"])
    let key = try test.newDevelopmentKey()
    let code = try developmentCode(key, of: app.evidence())
    let answer = try test.fetched(app) {
      $0.domain = "api.example"
      $0.development = fixed(code)
      $0.payload = .object([("role", .string("kiosk"))])
    }
    #expect(try test.claims(answer["custom"], type: "holdfast-custom+jwt")["dev"]?.flag == true)
    let claims = try test.claims(answer["token"], type: "holdfast-app+jwt")
    #expect(claims["dev"]?.flag == true && claims["sub"]?.text == "development")
    #expect(claims["ver"] == .array([.integer(0), .integer(0), .integer(0)]))
    #expect(try test.fetch(app).reasons == ["unknownImage", "debugger"])
    for change in [0, 31] {
      var wrong = code
      wrong[change] ^= 1
      #expect(
        try test.fetch(app) { $0.development = fixed(wrong) }.reasons == ["unknownImage", "debugger", "developmentKey"])
    }
    // A code belongs to one evidence, and waives neither freshness nor authenticity.
    let other = TestApp(salt: 2, image: app.image)
    #expect(try test.fetch(other) { $0.development = fixed(code) }.reasons == ["unknownImage", "developmentKey"])
    let old = TestApp(salt: 3, created: TestFleet.now - 301)
    let oldCode = try developmentCode(key, of: old.evidence())
    #expect(try test.fetch(old) { $0.development = fixed(oldCode) }.reasons == ["notFresh"])
    let forged = TestApp(salt: 4, evidenceKey: [UInt8](repeating: 1, count: 32))
    let forgedCode = try developmentCode(key, of: forged.evidence())
    #expect(try test.fetch(forged) { $0.development = fixed(forgedCode) }.reasons == ["notAuthentic"])
  }

  @Test func `a new development key replaces the old one, and a removed one counts no more`() throws {
    let test = try TestFleet(.sqlite)
    #expect(try test.perform("showDevelopmentKey")["added"] == .null)
    #expect(throws: AdministrationFault.notFound) { try test.perform("removeDevelopmentKey") }
    let app = TestApp(salt: 1)
    let keys = [try test.newDevelopmentKey(), try test.newDevelopmentKey()]
    #expect(keys[0] != keys[1] && keys.allSatisfy { $0.count == 26 })
    let codes = try keys.map { try developmentCode($0, of: app.evidence()) }
    #expect(try test.perform("showDevelopmentKey")["added"]?.number == TestFleet.now)
    #expect(try test.fetch(app) { $0.development = fixed(codes[0]) }.reasons == ["developmentKey"])
    _ = try test.fetched(app) { $0.development = fixed(codes[1]) }
    _ = try test.perform("removeDevelopmentKey", body: .object([]))
    #expect(try test.fetch(app) { $0.development = fixed(codes[1]) }.reasons == ["developmentKey"])
    #expect(try test.list("listChanges").first?["action"]?.text == "development-key.remove")
    let changes = try String(decoding: test.perform("listChanges").compact(), as: UTF8.self)
    #expect(!keys.contains { changes.contains($0) })
    #expect(throws: AdministrationFault.conflict(.reservedSubject)) {
      try test.fleet.approve(
        fixed(app.image), subject: "development", version: .zero, keys: try TestApp.keys(), by: test.owner)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `an attestation token may be for a domain with measurement, and bound to the app's data`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.addDomain("devices.example", [("measurement", .bool(true)), ("audience", .string("devices"))])
    try test.addDomain("api.example")
    let hash: Digest = fixed([UInt8](repeating: 7, count: 32))
    var wishes = AttestationWishes()
    (wishes.domain, wishes.hash) = ("devices.example", hash)
    guard
      case .attested(let attestation) = try test.fleet.attest(
        TestApp(salt: 1).evidence(), for: test.device, wishes: wishes)
    else {
      Issue.record("not attested")
      return
    }
    let other: Digest = fixed([UInt8](repeating: 8, count: 32))
    for wrong in [nil, other] {
      let answer = try test.fleet.issue(
        attestation: attestation.token, for: test.device, hash: wrong, invitation: try test.invite(),
        wishes: TokenWishes())
      #expect(answer.reasons == ["anotherDevice"])
    }
    let answer = try test.fleet.issue(
      attestation: attestation.token, for: test.device, hash: hash, invitation: try test.invite(),
      wishes: TokenWishes())
    #expect(answer.token != nil)
    let plain = try test.attest(TestApp(salt: 2))
    #expect(
      try test.fleet.issue(
        attestation: plain, for: test.device, hash: hash, invitation: try test.invite(), wishes: TokenWishes()
      ).reasons == ["anotherDevice"])
    for (name, refusal) in [("other.example", DomainRefusal.unknownDomain), ("api.example", .domainWithoutMeasurement)]
    {
      wishes.domain = name
      #expect(
        try test.fleet.attest(TestApp(salt: 3).evidence(), for: test.device, wishes: wishes) == .unavailable(refusal))
    }
    // The audience of a domain that was removed counts no more.
    _ = try test.perform("removeDomain", key: "devices.example")
    #expect(
      try test.fleet.issue(
        attestation: attestation.token, for: test.device, hash: hash, invitation: nil, wishes: TokenWishes()
      ).reasons == ["audience"])
  }

  /// Computes a development code as an app does, from the text that an operator gave it.
  private func developmentCode(_ text: String, of evidence: [UInt8]) throws -> [UInt8] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    let bits = try text.flatMap { character in
      let value = try #require(alphabet.firstIndex(of: character))
      return (0..<5).map { value >> (4 - $0) & 1 }
    }
    #expect(bits.count == 130 && bits.suffix(2) == [0, 0])
    let key = (0..<16).map { byte in UInt8(bits[byte * 8..<byte * 8 + 8].reduce(0) { $0 << 1 | $1 }) }
    var cryptography = OpenSSLCryptography()
    var digest = cryptography.sha256()
    digest.append(evidence.span)
    let evidenceDigest: Digest = try digest.finish()
    var mac = try cryptography.hmacSHA256(key: key.span)
    mac.append(Array("holdfast/1 development\0".utf8).span)
    mac.append(evidenceDigest.bytes)
    let code: MAC = try mac.finish()
    return (0..<32).map { code[$0] }
  }
}

extension TestFleet {
  func newDevelopmentKey() throws -> String {
    try #require(try perform("newDevelopmentKey", body: .object([]))["development_key"]?.text)
  }
}
