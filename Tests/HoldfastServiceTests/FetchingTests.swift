import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastService
import TestSupport
import Testing

@Suite struct FetchingTests {
  @Test(arguments: TestedDatabase.installed)
  func `an approved app gets a token for a domain, which the published key verifies`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.addDomain("api.example.com")
    let answer = try test.fetched(TestApp(salt: 1)) {
      $0.domain = "api.example.com"
      $0.hash = fixed([UInt8](repeating: 7, count: 32))
    }
    let claims = try test.claims(answer["token"], type: "holdfast-app+jwt")
    #expect(claims.members?.map(\.0) == ["iss", "iat", "exp", "aud", "did", "arc", "sub", "ver", "pay"])
    #expect(claims["aud"]?.text == "api.example.com" && claims["sub"]?.text == "app")
    #expect(claims["iat"]?.number == TestFleet.now && claims["exp"]?.number == TestFleet.now + 300)
    #expect(claims["pay"]?.text == "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=")
    #expect(claims["ver"] == .array([.integer(1), .integer(2), .integer(3)]))
    #expect(claims["did"] == answer["did"] && claims["arc"] == answer["arc"])
    #expect(answer["expires"]?.number == TestFleet.now + 300)
    #expect(answer["custom"] == .null && answer["strings"] == .null && answer["message_key"] == .null)
  }

  @Test func `a token with HS256 is signed with the domain's key, and with no other domain's`() throws {
    let test = try TestFleet(.sqlite)
    try test.addDomain("a.example", [("algorithm", .string("HS256")), ("audience", .string("backend"))])
    try test.addDomain("b.example", [("algorithm", .string("HS256"))])
    let token = try #require(try test.fetched(TestApp(salt: 1)) { $0.domain = "a.example" }["token"]?.text)
    let secrets = try ["a.example", "b.example"].map { try test.secretBytes("showDomainSecret", key: $0) }
    let payload = try verified(token, "holdfast-app+jwt", hs256(secrets[0]))
    #expect(payload["aud"]?.text == "backend")
    #expect(throws: JOSEFault.cryptography) {
      try verified(token, "holdfast-app+jwt", hs256(secrets[1]))
    }
    let changes = try test.list("listChanges").filter { $0["action"]?.text == "domain.secret" }
    #expect(changes.compactMap { $0["object"]?.text } == ["b.example", "a.example"])
  }

  @Test func `an unknown domain, an unprotected one and what is switched off are refused by their names`() throws {
    let test = try TestFleet(.sqlite)
    try test.addDomain("pinned.example", [("unprotected", .bool(true))])
    let cases: [(DomainRefusal, (inout FetchWishes) -> Void)] = [
      (.unknownDomain, { $0.domain = "other.example" }), (.unprotectedDomain, { $0.domain = "pinned.example" }),
      (.disabledFeature, { $0.strings = true }), (.disabledFeature, { $0.payload = .object([]) }),
    ]
    for (index, (refusal, wish)) in cases.enumerated() {
      guard case .unavailable(refusal, _) = try test.fetch(TestApp(salt: UInt8(index)), wish) else {
        Issue.record("\(refusal)")
        continue
      }
    }
    let days = try test.perform("statistics", query: [("days", "1")])["days"]?.elements
    #expect(days?.last?["refused"]?["disabledFeature"]?.number == 2)
  }

  @Test(arguments: TestedDatabase.installed)
  func `an app that is not approved gets all reasons and a code, and nothing else`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.addDomain("api.example")
    let app = TestApp(salt: 1, image: [UInt8](repeating: 9, count: 32), properties: ["container", "debugger"])
    guard case .refused(let refusal) = try test.fetch(app, { $0.domain = "api.example" }) else {
      Issue.record("no refusal")
      return
    }
    #expect(refusal.reasons.map(\.identifier) == ["unknownImage", "debugger"])
    let code = try #require(refusal.code?.description)
    let meaning = try test.perform("showCode", key: code)
    #expect(meaning["properties"] == .array([.string("container"), .string("debugger")]))
    let refusals = try test.list("listRefusals", query: [("code", code)])
    #expect(refusals.count == 1 && refusals[0]["step"]?.text == "fetch" && refusals[0]["device"] == .null)
    guard case .refused(let other) = try test.fleet.fetch([1, 2], wishes: FetchWishes()) else {
      Issue.record("no refusal")
      return
    }
    #expect(other.reasons.map(\.identifier) == ["notEvidence"] && other.code == nil)
  }

  @Test(arguments: TestedDatabase.installed)
  func `the same evidence counts for five minutes, and never for a measurement token as well`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let (app, other) = (TestApp(salt: 1), TestApp(salt: 2))
    _ = try test.fetched(app)
    #expect(try test.fleet.attest(app.evidence(), for: test.device).reasons == ["repeated"])
    _ = try test.attest(other)
    #expect(try test.fetch(other).reasons == ["repeated"])
    test.wait(seconds: 299)
    _ = try test.fetched(app)
    var changed = app
    changed.properties = ["container"]
    #expect(try test.fetch(changed).reasons == ["repeated"])
    test.wait(seconds: 1)
    #expect(try test.fetch(app).reasons == ["repeated"])
    #expect(try test.fetch(TestApp(salt: 3)).reasons.isEmpty)
    test.wait(seconds: 1)
    #expect(try test.fetch(TestApp(salt: 4)).reasons == ["notFresh"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `a domain that one instance removes gets no more tokens at another`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.addDomain("api.example")
    let other = try test.instance()
    _ = try test.fetched(TestApp(salt: 1), at: other) { $0.domain = "api.example" }
    _ = try test.perform("removeDomain", key: "api.example")
    guard
      case .unavailable(.unknownDomain, _) = try test.fetch(TestApp(salt: 1), at: other, { $0.domain = "api.example" })
    else {
      Issue.record("the domain is there")
      return
    }
    #expect(throws: AdministrationFault.notFound) { try test.perform("removeDomain", key: "api.example") }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a revoked prover gets nothing any more, until it is reinstated`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    try test.setFeatures { $0.secureStrings = true }
    try test.addDomain("api.example")
    _ = try test.fetched(TestApp(salt: 1)) { $0.domain = "api.example" }
    let id = try #require(try test.list("listProvers").first?["id"]?.text)
    _ = try test.perform("revokeProver", key: id, body: .object([("reason", .string("lost"))]))
    for salt: UInt8 in [1, 2] {
      let answer = try test.fetch(TestApp(salt: salt)) { ($0.domain, $0.strings) = ("api.example", true) }
      #expect(answer.reasons == ["revokedProver"])
    }
    _ = try test.perform("reinstateProver", key: id, body: .object([]))
    #expect(try test.fetched(TestApp(salt: 3)) { $0.domain = "api.example" }["token"]?.text != nil)
  }

  @Test func `a custom token has the app's claims and the service's, and none of these can be the app's`() throws {
    let test = try TestFleet(.sqlite)
    try test.setFeatures { $0.customTokens = true }
    let payload = JSONValue.object([("role", .string("kiosk")), ("floors", .array([.integer(3), .null]))])
    let answer = try test.fetched(TestApp(salt: 1)) { $0.payload = payload }
    let claims = try test.claims(answer["custom"], type: "holdfast-custom+jwt")
    #expect(claims.members?.map(\.0) == ["role", "floors", "iss", "iat", "exp", "did", "arc"])
    #expect(claims["exp"]?.number == TestFleet.now + 300)
    // A custom token is no app token, although one key signs both.
    #expect(throws: JOSEFault.unexpected) { try test.claims(answer["custom"], type: "holdfast-app+jwt") }
    for name in CustomPayload.reservedClaims {
      #expect(!FetchWishes.canSign(.object([("a", .null), (name, .null)])))
    }
    #expect(!FetchWishes.canSign(.array([])))
    let text = String(repeating: "x", count: 4096 - 8)
    #expect(FetchWishes.canSign(.object([("a", .string(text))])))
    #expect(!FetchWishes.canSign(.object([("a", .string(text + "x"))])))
    let largest = try test.fetched(TestApp(salt: 2)) { $0.payload = .object([("a", .string(text))]) }
    #expect(try test.claims(largest["custom"], type: "holdfast-custom+jwt")["a"]?.text == text)
  }

  @Test func `evidence says the system and the app's properties, and the response code shows them`() throws {
    let test = try TestFleet(.sqlite)
    var app = TestApp(salt: 1)
    app.statements = try EvidenceStatements(
      appProperties: ["kiosk 7", "line\nend"], systemID: "debian", systemVersion: "12", userProperty: "floor 3")
    let code = try #require(try test.fetched(app)["arc"]?.text)
    let meaning = try test.perform("showCode", key: code)
    #expect(meaning["app_properties"] == .array([.string("kiosk 7"), .string("line\\u{a}end")]))
    #expect(meaning["system_id"]?.text == "debian" && meaning["system_version"]?.text == "12")
    #expect(meaning["user_property"]?.text == "floor 3" && meaning["stated"]?.number == TestFleet.now)
    _ = try test.fetched(TestApp(salt: 2, host: 2))
    let listed = try test.list("listCodes")
    #expect(listed.count == 2 && listed.contains(meaning))
    #expect(listed.contains { $0["app_properties"] == .null && $0["stated"] == .null })
  }
}

extension TestFleet {
  func addDomain(_ name: String, _ members: [(String, JSONValue)] = []) throws {
    _ = try perform("addDomain", body: .object([("name", .string(name))] + members))
  }

  func setFeatures(_ change: (inout AppFeatures) -> Void) throws {
    var policy = try fleet.policy()
    change(&policy.features)
    try fleet.setPolicy(policy, by: owner)
  }

  func fetch(
    _ app: TestApp, at fleet: Fleet? = nil, _ wish: (inout FetchWishes) -> Void = { _ in }
  ) throws -> FetchAnswer {
    var wishes = FetchWishes()
    wish(&wishes)
    return try (fleet ?? self.fleet).fetch(try app.evidence(), wishes: wishes)
  }

  func fetched(
    _ app: TestApp, at fleet: Fleet? = nil, _ wish: (inout FetchWishes) -> Void = { _ in }
  ) throws -> JSONValue {
    let answer = try fetch(app, at: fleet, wish)
    guard case .fetched(let body) = answer else { throw TestRefusal(answer: "\(answer)") }
    return body
  }

  /// The claims of a token that the service's key for apps verifies.
  func claims(_ token: JSONValue?, type: String, at fleet: Fleet? = nil) throws -> JSONValue {
    try verified(try #require(token?.text), type, .es256Public((fleet ?? self.fleet).configurationKey().point))
  }

  /// The 32 bytes of the member `secret` in the answer of an operation.
  func secretBytes(_ name: String, key: String? = nil) throws -> [UInt8] {
    let text = try #require(try perform(name, key: key, body: .object([]))["secret"]?.text)
    let bytes = try #require(Schema.base64Bytes(text))
    try #require(bytes.count == 32)
    return bytes
  }
}

private func hs256(_ secret: [UInt8]) -> JWSKey { .hs256(SecretBytes(copying: secret.span)) }

/// Verifies a compact JWS whose header says only what its kind requires, and returns its claims.
func verified(_ token: String, _ type: String, _ key: consuming JWSKey) throws -> JSONValue {
  let bytes = Array(token.utf8)
  var cryptography = OpenSSLCryptography()
  let payload = try key.verify(bytes.span, type: type, using: &cryptography)
  return try JSONValue(parsing: [UInt8](payload.bytes), byteLimit: 1 << 20)
}

extension FetchAnswer {
  /// The identifiers of the reasons of a refusal; empty for any other answer.
  var reasons: [String] {
    if case .refused(let refusal) = self { refusal.reasons.map { $0.identifier } } else { [] }
  }
}
