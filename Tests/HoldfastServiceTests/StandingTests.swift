import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastProver
import HoldfastService
import TestSupport
import Testing

@Suite struct StandingTests {
  @Test(arguments: TokenStanding.Status.allCases)
  func `a prover knows each state of a token by the name that the service has for it`(
    status: TokenStanding.Status
  ) throws {
    let answer = JSONValue.object([
      ("token", .string(hexadecimal(Digest()))), ("status", .string(status.rawValue)), ("expires", .integer(1)),
    ])
    let read = try EnrolmentAnswer(answer.compact(), about: Digest()).standing.status
    #expect(read.name == status.rawValue)
    if case .other = read { Issue.record("the prover has no state of this name") }
  }

  @Test(arguments: TestedDatabase.installed)
  func `a prover learns what became of its token, and gets the terms of the present policy`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let token = try test.issuedToken(TestApp(salt: 1))
    #expect(try test.standing(TestApp(salt: 2), token).map(\.status) == .valid)
    #expect(try test.standing(TestApp(salt: 2), token)?.terms == nil)
    try test.setSettings("a=1")
    test.wait(seconds: 60)
    let standing = try #require(try test.standing(TestApp(salt: 3), token))
    let terms = try SignedTerms(verifying: try #require(standing.terms)).terms
    #expect(terms.conditions.settings?.text == "a=1")
    #expect(terms.tokenDigest == (try test.held(token).digest))
    #expect(terms.issued == TestFleet.now + 60)
    _ = try test.perform("raiseGeneration", key: hexadecimal(test.device.deviceID), body: .object([]))
    let superseded = try #require(try test.standing(TestApp(salt: 4), token))
    #expect(superseded.status == .superseded && superseded.terms == nil)
    _ = try test.perform("blockDevice", key: hexadecimal(test.device.deviceID), body: .object([]))
    #expect(try test.standing(TestApp(salt: 5), token)?.status == .blocked)
    _ = try test.perform("revokeToken", key: hexadecimal(token), body: .object([("reason", .string("lost"))]))
    #expect(try test.standing(TestApp(salt: 6), token)?.status == .revoked)
    let prover = try #require(try test.list("listProvers").first?["id"]?.text)
    _ = try test.perform("revokeProver", key: prover, body: .object([("reason", .string("lost"))]))
    #expect(try test.fleet.standing(TestApp(salt: 7).evidence(), of: test.held(token)).reasons == ["revokedProver"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `only the host of a token learns of it or gives it back, with fresh evidence of a registered release`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let token = try test.issuedToken(TestApp(salt: 1))
    let held = try test.held(token)
    let other = HeldToken(device: test.device.deviceID, digest: Digest())
    let elsewhere = HeldToken(device: try TestFleet.device(2).deviceID, digest: held.digest)
    let cases: [(TestApp, HeldToken, String)] = [
      (TestApp(salt: 2), other, "unknownToken"), (TestApp(salt: 7), elsewhere, "unknownToken"),
      (TestApp(salt: 3, host: 2), held, "unknownToken"),
      (TestApp(salt: 4, evidenceKey: [UInt8](repeating: 1, count: 32)), held, "notAuthentic"),
      (TestApp(salt: 5, created: TestFleet.now - 301), held, "notFresh"),
      // The evidence with which the token was issued belongs to its device.
      (TestApp(salt: 1), held, "repeated"),
    ]
    for (app, asked, reason) in cases {
      #expect(try test.fleet.standing(app.evidence(), of: asked).reasons == [reason])
      #expect(try test.fleet.leave(app.evidence(), token: asked).reasons == [reason])
    }
    #expect(try test.fleet.leave([1, 2, 3], token: held).reasons == ["notEvidence"])
    #expect(try test.list("listTokens").first?["revoked"] == .null)
    #expect(try test.standing(TestApp(salt: 6), token)?.status == .valid)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a prover that leaves has its token revoked once, and operators see it`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let (token, kept) = (try test.issuedToken(TestApp(salt: 1)), try test.issuedToken(TestApp(salt: 2)))
    // A changed app may leave too, although it would get nothing else.
    let changed = TestApp(salt: 3, image: [UInt8](repeating: 9, count: 32), properties: ["debugger"])
    let held = try test.held(token)
    #expect(try test.fleet.standing(changed.evidence(), of: held).reasons == ["unknownImage", "debugger"])
    for salt: UInt8 in [4, 5] {
      var app = changed
      app.salt = salt
      guard case .known(let standing) = try test.fleet.leave(app.evidence(), token: held) else {
        Issue.record("refused")
        continue
      }
      #expect(standing.status == .left)
      test.wait(seconds: 1)
    }
    let record = try test.perform("showToken", key: hexadecimal(token))
    #expect(record["reason"]?.text == "left" && record["revoked"]?.number == TestFleet.now)
    #expect(try test.perform("showToken", key: hexadecimal(kept))["revoked"] == .null)
    let changes = try test.list("listChanges").filter { $0["action"]?.text == "token.leave" }
    #expect(changes.count == 1 && changes[0]["object"]?.text == hexadecimal(token))
    #expect(try test.enrol(TestApp(salt: 1), invitation: nil).reasons == ["revokedToken"])
    // A token that an operator revoked stays revoked for the operator's reason.
    _ = try test.perform("revokeToken", key: hexadecimal(kept), body: .object([("reason", .string("lost"))]))
    guard case .known(let standing) = try test.fleet.leave(TestApp(salt: 6).evidence(), token: test.held(kept)) else {
      Issue.record("refused")
      return
    }
    #expect(standing.status == .revoked)
    #expect(try test.perform("showToken", key: hexadecimal(kept))["reason"]?.text == "lost")
  }
}

@Suite struct PolicyPartTests {
  @Test(arguments: TestedDatabase.installed)
  func `the most specific settings go with a token, and the others stay for other tokens`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let device = hexadecimal(test.device.deviceID)
    let version = JSONValue.array([.integer(1), .integer(2), .integer(3)])
    let token = try test.issuedToken(TestApp(salt: 1))
    func settings(_ salt: UInt8) throws -> String? {
      let terms = try #require(try test.standing(TestApp(salt: salt), token)).terms
      return try terms.map { try SignedTerms(verifying: $0).terms.conditions.settings?.text } ?? nil
    }
    // In an order in which the last one set is not the one that counts.
    try test.setSettings("both", [("app", .string("app")), ("device", .string(device))])
    try test.setSettings("other", [("app", .string("other"))])
    try test.setSettings("device", [("device", .string(device))])
    try test.setSettings("version", [("app", .string("app")), ("version", version)])
    try test.setSettings("app", [("app", .string("app"))])
    try test.setSettings("all")
    let scopes: [(String, [(String, JSONValue)])] = [
      ("both", [("app", .string("app")), ("device", .string(device))]), ("device", [("device", .string(device))]),
      ("version", [("app", .string("app")), ("version", version)]), ("app", [("app", .string("app"))]), ("all", []),
    ]
    for (index, (name, scope)) in scopes.enumerated() {
      #expect(try settings(UInt8(10 + index)) == name)
      _ = try test.perform("removeSettings", body: .object(scope))
      #expect(throws: AdministrationFault.notFound) { try test.perform("removeSettings", body: .object(scope)) }
    }
    #expect(try settings(20) == nil)
    #expect(try test.perform("showPolicy")["settings_for"]?.elements?.count == 1)
    let actions = try test.list("listChanges").filter { $0["action"]?.text == "settings.remove" }
    #expect(actions.last?["object"]?.text == "app app, device \(device)")
  }

  @Test func `settings for nothing, for a version without its app, and beyond 32 are refused`() throws {
    let test = try TestFleet(.sqlite)
    let version = JSONValue.array([.integer(1), .integer(2), .integer(3)])
    #expect(throws: AdministrationFault.self) { try test.setSettings("a", [("version", version)]) }
    for number in 0..<32 { try test.setSettings("a", [("app", .string("app\(number)"))]) }
    #expect(throws: AdministrationFault.conflict(.tooMany)) {
      try test.setSettings("a", [("app", .string("one more"))])
    }
    try test.setSettings("changed", [("app", .string("app31"))])
    var policy = try #require(try test.perform("showPolicy").members)
    let index = try #require(policy.firstIndex { $0.0 == "settings_for" })
    let all = try #require(policy[index].1.elements)
    #expect(all.count == 32)
    for wrong in [all[0], .object([("settings", all[0]["settings"] ?? .null)])] {
      policy[index].1 = .array([all[0], wrong])
      #expect(throws: AdministrationFault.self) {
        try test.perform("setPolicy", body: .object([("policy", .object(policy))]))
      }
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `posture rules are signed by the issuer, and their number only rises`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    func set(
      _ number: UInt64, _ rules: [(String, JSONValue)] = [("root", .string("refuse"))], until: UInt64? = nil
    ) throws {
      _ = try test.perform(
        "setPostureRules",
        body: .object(
          [
            ("number", .integer(number)), ("default", .string("ignore")), ("unknown", .string("warn")),
            ("rules", .object(rules)),
          ] + (until.map { [("until", .integer($0))] } ?? [])))
    }
    #expect(try test.fleet.postureRules() == nil)
    #expect(try test.perform("showPostureRules")["rules"] == .null)
    try set(3)
    for number: UInt64 in [1, 3] { #expect(throws: AdministrationFault.conflict(.notNewer)) { try set(number) } }
    #expect(throws: AdministrationFault.self) { try set(4, [("Root", .string("refuse"))]) }
    #expect(throws: AdministrationFault.self) { try set(4, [("root", .string("explode"))]) }
    let many = (0..<64).map { ("a" + String(repeating: "b", count: 20) + letters($0), JSONValue.string("refuse")) }
    #expect(throws: AdministrationFault.conflict(.tooLong)) { try set(4, many) }
    let rules = try #require(try test.fleet.postureRules())
    let point = try #require(try test.fleet.issuerKeys().first).point
    let claims = try SignedJSON.verify(Array(rules.text.utf8), type: "holdfast-posture-rules+jwt", by: point)
    #expect(claims.members?.map(\.0) == ["num", "iat", "default", "unknown", "rules"])
    #expect(claims["num"]?.number == 3 && claims["iat"]?.number == TestFleet.now)
    try set(4, until: TestFleet.now + 60)
    let next = try #require(try test.fleet.postureRules())
    let later = try SignedJSON.verify(Array(next.text.utf8), type: "holdfast-posture-rules+jwt", by: point)
    #expect(later["until"]?.number == TestFleet.now + 60)
  }

  @Test(arguments: TestedDatabase.installed)
  func `posture rules stay under the key of the first ones, which provers follow, when another key signs tokens`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    func set(_ number: UInt64) throws -> [UInt8] {
      _ = try test.perform(
        "setPostureRules",
        body: .object([
          ("number", .integer(number)), ("default", .string("ignore")), ("unknown", .string("warn")),
          ("rules", .object([])),
        ]))
      return Array(try #require(try test.fleet.postureRules()).text.utf8)
    }
    _ = try set(1)
    let first = try #require(try test.fleet.issuerKeys().first).point
    _ = try test.perform("rotateKey", body: .object([("active", .integer(TestFleet.now))]))
    #expect(try test.fleet.issuerKeys().count == 2)
    let claims = try SignedJSON.verify(try set(2), type: "holdfast-posture-rules+jwt", by: first)
    #expect(claims["num"]?.number == 2)
  }
}

/// Two letters that differ for each number below 64.
private func letters(_ number: Int) -> String {
  String(decoding: [UInt8(ascii: "a") + UInt8(number / 8), UInt8(ascii: "a") + UInt8(number % 8)], as: UTF8.self)
}

extension StandingAnswer {
  /// The identifiers of the reasons of a refusal; empty for any other answer.
  fileprivate var reasons: [String] {
    if case .refused(let refusal) = self { refusal.reasons.map { $0.identifier } } else { [] }
  }
}

extension TestFleet {
  /// Enrols an app on an invitation, and returns the id of its token.
  func issuedToken(_ app: TestApp, for device: DeviceDescriptor? = nil) throws -> TokenID {
    let issued = try #require(try enrol(app, for: device, invitation: try invite(to: device)).token)
    issuedTokens[issued.id] = issued.bytes
    return issued.id
  }

  /// Returns the name of a token for its prover. The token is for the device of the tests.
  func held(_ token: TokenID) throws -> HeldToken {
    let bytes = try #require(issuedTokens[token])
    return HeldToken(device: device.deviceID, digest: try Terms.digest(of: bytes))
  }

  func standing(_ app: TestApp, _ token: TokenID) throws -> TokenStanding? {
    var app = app
    app.created = clock.seconds ?? 0
    guard case .known(let standing) = try fleet.standing(app.evidence(), of: held(token)) else { return nil }
    return standing
  }

  fileprivate func setSettings(_ text: String, _ scope: [(String, JSONValue)] = []) throws {
    var value: [UInt8] = []
    let bytes = Array(text.utf8)
    value.append(asPaddedBase64: bytes.span)
    let settings = JSONValue.object([
      ("type", .string("text")), ("value", .string(String(decoding: value, as: UTF8.self))),
    ])
    _ = try perform("setSettings", body: .object(scope + [("settings", settings)]))
  }
}
