import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastService
import TestSupport
import Testing

@Suite struct AppKeyTests {
  @Test(arguments: TestedDatabase.installed)
  func `a new key for apps signs from its time on, and the old one stays listed while its tokens may live`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.setFeatures { $0.customTokens = true }
    try test.addDomain("api.example")
    let first = try #require(try test.fleet.appTokenKeys().first)
    let configurationPoint = try test.fleet.configurationKey().point
    #expect(first.isForConfiguration && first.point == configurationPoint)
    let record = try test.perform(
      "rotateAppKey", body: .object([("active", .integer(TestFleet.now + 100))]), at: try test.instance())
    let keys = try test.fleet.appTokenKeys()
    let changes = try String(decoding: test.perform("listChanges").compact(), as: UTF8.self)
    #expect(changes.contains(#""app-key.rotate""#))
    #expect(keys.count == 2 && record["id"]?.text == hexadecimal(keys[1].id) && !keys[1].isForConfiguration)
    func signer(_ salt: UInt8) throws -> P256Point {
      var app = TestApp(salt: salt)
      app.created = test.clock.seconds ?? 0
      let answer = try test.fetched(app) { ($0.domain, $0.payload) = ("api.example", .object([])) }
      let token = try #require(answer["token"]?.text)
      let id = try header(token)["kid"]?.text
      let key = try #require(try test.fleet.appTokenKeys().first { base64URL($0.id.bytes) == id })
      _ = try verified(token, "holdfast-app+jwt", .es256Public(key.point))
      let custom = try #require(answer["custom"]?.text)
      _ = try verified(custom, "holdfast-custom+jwt", .es256Public(key.point))
      return key.point
    }
    test.wait(seconds: 99)
    #expect(try signer(1) == first.point)
    test.wait(seconds: 1)
    #expect(try signer(2) == keys[1].point)
    // The apps are built with the key of the configuration, so that never changes.
    let configuration = try test.fleet.configuration(services: [])
    _ = try verified(configuration, "holdfast-configuration+jwt", .es256Public(first.point))
    _ = try test.perform("rotateAppKey", body: .object([("active", .integer(0))]))
    #expect(try signer(3) == test.fleet.appTokenKeys().last?.point)
    test.wait(seconds: 86_399)
    #expect(try test.fleet.appTokenKeys().map(\.id).contains(keys[1].id))
    test.wait(seconds: 1)
    #expect(try test.fleet.appTokenKeys().count == 2)
    #expect(try test.perform("listAppKeys")["items"]?.elements?.first?["configuration"]?.flag == true)
  }

  @Test(arguments: TestedDatabase.installed)
  func `the key of a domain with HS256 is replaced by one that the backend can have before`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.addDomain("a.example", [("algorithm", .string("HS256"))])
    try test.addDomain("b.example", [("algorithm", .string("HS256"))])
    try test.addDomain("c.example")
    let (first, other) = (
      try test.secretBytes("showDomainSecret", key: "a.example"),
      try test.secretBytes("showDomainSecret", key: "b.example")
    )
    let next = try #require(
      try test.perform("showDomainSecret", key: "a.example", body: .object([("next", .bool(true))]))["secret"]?.text)
    #expect(try test.secretBytes("showDomainSecret", key: "a.example") == first)
    let rotated = try test.perform("rotateDomain", key: "a.example", body: .object([]), at: try test.instance())
    #expect(rotated["epoch"]?.number == 2)
    let second = try test.secretBytes("showDomainSecret", key: "a.example")
    #expect(second == Schema.base64Bytes(next) && second != first)
    #expect(try test.secretBytes("showDomainSecret", key: "b.example") == other)
    let token = try #require(try test.fetched(TestApp(salt: 1)) { $0.domain = "a.example" }["token"]?.text)
    #expect(try header(token)["kid"]?.text == "2")
    #expect(try isSigned(token, by: second))
    #expect(try !isSigned(token, by: first))
    // A domain that is removed and added again does not go back to a key that was replaced.
    _ = try test.perform("removeDomain", key: "a.example")
    try test.addDomain("a.example", [("algorithm", .string("HS256"))])
    #expect(try test.secretBytes("showDomainSecret", key: "a.example") == second)
    #expect(throws: AdministrationFault.notFound) { try test.perform("rotateDomain", key: "d.example") }
    #expect(throws: AdministrationFault.conflict(.notShared)) { try test.perform("rotateDomain", key: "c.example") }
  }

  @Test(arguments: ["ES256", "HS256"])
  func `a policy that hides refusals gives a refused app a token that no backend accepts`(algorithm: String) throws {
    let test = try TestFleet(.sqlite)
    try test.addDomain("api.example", [("algorithm", .string(algorithm))])
    try test.setFeatures { $0.messageSigning = true }
    var policy = try #require(try test.perform("showPolicy").members)
    policy.append(("decoy_tokens", .bool(true)))
    _ = try test.perform("setPolicy", body: .object([("policy", .object(policy))]))
    let bad = TestApp(salt: 1, image: [UInt8](repeating: 9, count: 32), properties: ["debugger"])
    let good = try test.fetched(TestApp(salt: 2)) { $0.domain = "api.example" }
    let decoy = try test.fetched(bad) { $0.domain = "api.example" }
    #expect(decoy.members?.map(\.0) == good.members?.map(\.0))
    let tokens = try [good, decoy].map { try #require($0["token"]?.text) }
    #expect(try header(tokens[0]) == header(tokens[1]))
    let claims = try tokens.map { try part($0, 1) }
    #expect(claims[0].members?.map(\.0) == claims[1].members?.map(\.0))
    #expect(claims[1]["sub"]?.text == "app" && claims[1]["did"] == claims[0]["did"])
    #expect(decoy["message_key"] != good["message_key"] && decoy["expires"] == good["expires"])
    if algorithm == "HS256" {
      let secret = try test.secretBytes("showDomainSecret", key: "api.example")
      #expect(try isSigned(tokens[0], by: secret))
      #expect(try !isSigned(tokens[1], by: secret))
    } else {
      #expect(try test.claims(good["token"], type: "holdfast-app+jwt") == claims[0])
      #expect(throws: JOSEFault.cryptography) { try test.claims(decoy["token"], type: "holdfast-app+jwt") }
    }
    // Operators see the refusal by the code that the backend sees.
    let code = try #require(claims[1]["arc"]?.text)
    #expect(try test.list("listRefusals", query: [("code", code)]).count == 1)
    // An app that asks twice gets the same again, as an approved one would.
    let again = try test.fetched(bad) { $0.domain = "api.example" }
    #expect(again["message_key"] == decoy["message_key"])
    #expect(algorithm == "ES256" || again["token"] == decoy["token"])
    // No approved app gets a token for a domain without protection.
    try test.addDomain("open.example", [("unprotected", .bool(true))])
    #expect(try test.fetch(bad) { $0.domain = "open.example" }.reasons == ["unknownImage", "debugger"])
    // Everything but the token is refused as before, and so is evidence of an unknown maker.
    #expect(try test.fetch(bad).reasons == ["unknownImage", "debugger"])
    let forged = TestApp(salt: 3, evidenceKey: [UInt8](repeating: 1, count: 32))
    #expect(try test.fetch(forged) { $0.domain = "api.example" }.reasons == ["notAuthentic"])
    #expect(try test.fleet.policy().givesDecoys)
    let configuration = try test.fleet.configuration(services: [])
    #expect(try part(configuration, 1)["features"]?["decoy_tokens"] == nil)
  }

  @Test func `a payload has at most 14 levels, which fit into every message that carries it`() throws {
    let test = try TestFleet(.sqlite)
    try test.setFeatures { $0.customTokens = true }
    func payload(_ levels: Int) -> JSONValue {
      .object([("a", (2...levels).reduce(JSONValue.null) { value, _ in .array([value]) })])
    }
    #expect(payload(14).levelCount == 14 && CustomPayload.levelLimit == 14)
    #expect(FetchWishes.canSign(payload(14)) && !FetchWishes.canSign(payload(15)) && !FetchWishes.canSign(payload(16)))
    let answer = try test.fetched(TestApp(salt: 1)) { $0.payload = payload(14) }
    #expect(try test.claims(answer["custom"], type: "holdfast-custom+jwt")["a"] == payload(14)["a"])
    // A carrier's task puts the payload into two objects.
    let task = JSONValue.object([("body", .object([("payload", payload(14))]))]).compact()
    #expect(try JSONValue(parsing: task, byteLimit: 4096)["body"]?["payload"] == payload(14))
  }
}

/// A part of a compact JWS, whose signature is not checked.
private func part(_ token: String, _ index: Int) throws -> JSONValue {
  let parts = token.split(separator: ".")
  let bytes = Array(parts[index].utf8)
  var buffer = ByteBuffer<8192>()
  try buffer.append(base64URL: bytes.span)
  return try JSONValue(parsing: [UInt8](buffer.bytes), byteLimit: 8192)
}

private func header(_ token: String) throws -> JSONValue { try part(token, 0) }

/// Returns whether a token with HS256 is signed with a key.
private func isSigned(_ token: String, by key: [UInt8]) throws -> Bool {
  let end = try #require(token.lastIndex(of: "."))
  let (input, signature) = (Array(token[..<end].utf8), String(token[token.index(after: end)...]))
  var cryptography = OpenSSLCryptography()
  var mac = try cryptography.hmacSHA256(key: key.span)
  mac.append(input.span)
  let code: MAC = try mac.finish()
  return base64URL(code.bytes) == signature
}
