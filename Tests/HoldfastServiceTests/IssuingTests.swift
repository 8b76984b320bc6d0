import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastService
import TestSupport
import Testing

@Suite struct IssuingTests {
  @Test(arguments: TestedDatabase.installed)
  func `an invitation gives one token, and the same request gets the same token again`(database: TestedDatabase) throws
  {
    let test = try TestFleet(database)
    var permission = TokenPermission()
    (permission.user, permission.commands, permission.maximumUses) = ("alice", ["unlock", "lock"], 5)
    let code = try test.invite(permission)
    let app = TestApp(salt: 1)
    let first = try #require(try test.enrol(app, invitation: code).token)
    #expect(try test.enrol(app, invitation: code).token == first)
    #expect(try test.enrol(app, at: test.instance()).token == first)
    #expect(first.claims["user"]?.text == "alice")
    #expect(first.claims["commands"]?.elements?.compactMap { $0.text } == ["unlock", "lock"])
    #expect(first.claims["maximum_uses"]?.number == 5)
    #expect(first.claims["expires"]?.number == TestFleet.now + 90 * 86_400)
    let tokens = try test.list("listTokens", query: [("user", "alice")])
    #expect(tokens.count == 1)
    #expect(tokens.first?["id"]?.text == hexadecimal(first.id))
    #expect(first.claims["token_id"] == nil)
  }

  @Test func `an invitation that an operator makes gives what was asked for`() throws {
    let test = try TestFleet(.sqlite)
    let record = try test.perform(
      "invite",
      body: .object([
        ("device", .string(hexadecimal(test.device.deviceID))), ("valid_seconds", .integer(60)),
        ("user", .string("alice")), ("commands", .array([.string("unlock")])), ("maximum_uses", .integer(5)),
      ]))
    let code = try #require(record["code"]?.text.flatMap { InvitationCode($0) })
    let claims = try #require(try test.enrol(TestApp(salt: 1), invitation: code).token).claims
    #expect(claims["user"]?.text == "alice" && claims["commands"] == .array([.string("unlock")]))
    #expect(claims["maximum_uses"]?.number == 5)
  }

  @Test(arguments: TestedDatabase.installed)
  func `an invitation is good for one baseline, one device and its lifetime`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let other = try TestFleet.device(2)
    try test.fleet.register(other, label: nil, by: test.owner)
    let code = try test.invite()
    #expect(try test.enrol(TestApp(salt: 1), for: other, invitation: code).reasons == ["invitationForAnotherDevice"])
    #expect(try test.enrol(TestApp(salt: 2), invitation: code).token != nil)
    #expect(try test.enrol(TestApp(salt: 3), invitation: code).reasons == ["usedInvitation"])
    #expect(try test.enrol(TestApp(salt: 4, host: 2), invitation: code).reasons == ["usedInvitation"])
    let unknown = try #require(InvitationCode("AAAAA-BBBBB-CCCCC-DDDDD"))
    #expect(try test.enrol(TestApp(salt: 5), invitation: unknown).reasons == ["unknownInvitation"])
    let (id, revoked) = try test.fleet.invite(to: test.device.deviceID, TokenPermission(), for: 60, by: test.owner)
    try test.fleet.revoke(invitation: id, by: test.owner)
    let refused = try test.enrol(TestApp(salt: 6), invitation: revoked)
    #expect(refused.reasons == ["revokedInvitation"] && refused.sentences == ["The invitation was revoked."])
    #expect(throws: AdministrationFault.conflict(.usedInvitation)) {
      try test.fleet.revoke(invitation: id, by: test.owner)
    }
    let short = try test.invite(for: 60)
    test.wait(seconds: 60)
    #expect(try test.enrol(TestApp(salt: 7), invitation: short).reasons == ["expiredInvitation"])
  }

  @Test func `a code is read in either case, with a hyphen between groups or without`() {
    for text in ["ABCDE-FGHIJ-KLMNO-PQ234", "abcdefghijklmnopq234", "ABCDEFGHIJ-klmnoPQ234"] {
      #expect(InvitationCode(text)?.text == "ABCDE-FGHIJ-KLMNO-PQ234", "\(text)")
    }
    for text in [
      "ABCDE--FGHIJ-KLMNO-PQ234", "-ABCDE-FGHIJ-KLMNO-PQ234", "ABCDE-FGHIJ-KLMNO-PQ234-", "ABCD-EFGHIJ-KLMNO-PQ234",
      "ABCDE-FGHIJ-KLMNO-PQ23", "ABCDE-FGHIJ-KLMNO-PQ2345", "ABCDE-FGHIJ-KLMNO-PQ230", "ABCDE-FGHIJ-KLMNO-PQ238",
      "ABCDE FGHIJ KLMNO PQ234", "",
    ] {
      #expect(InvitationCode(text) == nil, "\(text)")
    }
  }

  @Test func `a baseline stays that of its device, also where its appraisal was lost`() throws {
    let test = try TestFleet(.sqlite)
    let other = try TestFleet.device(2)
    try test.fleet.register(other, label: nil, by: test.owner)
    #expect(try test.enrol(TestApp(salt: 1), invitation: test.invite()).token != nil)
    var table = ""
    let records = try Backup(of: test.fleet).records().filter { record in
      if case .table(let name) = record { table = name }
      if case .row = record { return table != "appraisals" }
      return true
    }
    let folder = try TemporaryFolder()
    let location = try TestedDatabase.sqlite.newLocation(in: folder)
    try Backup(records, version: FleetSchema.scripts.count).restore(
      into: location, isComplete: true, clock: test.clock)
    let fleet = try Fleet(location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), clock: test.clock)
    #expect(try test.enrol(TestApp(salt: 1), for: other, at: fleet).reasons == ["baselineOfAnotherDevice"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `issued tokens and refusals are counted by days, and days without any are zero`(database: TestedDatabase) throws
  {
    let test = try TestFleet(database)
    let last = TestFleet.now / 86_400 * 86_400 + 2 * 86_400
    #expect(try test.enrol(TestApp(salt: 1), invitation: test.invite()).token != nil)
    test.wait(seconds: 2 * 86_400)
    let late = TestApp(salt: 2, created: TestFleet.now + 2 * 86_400)
    #expect(try test.enrol(late, invitation: InvitationCode("AAAAA-BBBBB-CCCCC-DDDDD")).token == nil)
    for count: UInt64 in [1, 2, 3, 4] {
      let days = try #require(
        try test.perform("statistics", query: [("days", String(count))])["days"]?.elements)
      #expect(days.compactMap { $0["day"]?.number } == (0..<count).map { last - (count - 1 - $0) * 86_400 })
      #expect(days.compactMap { $0["issued"]?.number } == [0, 1, 0, 0].suffix(Int(count)))
      #expect(days.last?["refused"] == .object([("unknownInvitation", .integer(1))]))
      #expect(days.dropLast().allSatisfy { $0["refused"] == .object([]) })
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `without an invitation, an operator decides, and a fresh attestation collects the token`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let app = TestApp(salt: 1, properties: ["container"])
    var wishes = TokenWishes()
    (wishes.user, wishes.commands) = ("bob", ["unlock"])
    let id = try #require(try test.enrol(app, wishes: wishes).request)
    #expect(try test.enrol(app, wishes: wishes).request == id)
    let shown = try test.perform("showRequest", key: hex(id.bytes))
    #expect(shown["device_label"]?.text == "front door")
    #expect(shown["properties"]?.elements?.compactMap { $0.text } == ["container"])
    #expect(shown["user"]?.text == "bob")
    #expect(try test.fleet.status(of: id)?.status == .waiting)
    test.wait(seconds: 7200)
    var permission = TokenPermission()
    (permission.user, permission.commands, permission.maximumUses) = ("bob", ["lock"], 7)
    try test.fleet.approve(request: id, permission, by: test.owner)
    #expect(try test.fleet.status(of: id)?.status == .approved)
    #expect(throws: AdministrationFault.conflict(.decidedRequest)) {
      try test.fleet.refuse(request: id, reason: "too late", by: test.owner)
    }
    let token = try #require(try test.enrol(app).token)
    #expect(token.claims["user"]?.text == "bob")
    // The operator did not grant the wish, but something else.
    #expect(token.claims["commands"] == .array([.string("lock")]) && token.claims["maximum_uses"]?.number == 7)
    #expect(try test.fleet.status(of: id)?.status == .collected)
    #expect(try test.enrol(app).token == token)
  }

  @Test(arguments: TestedDatabase.installed)
  func `requests that wait are listed from the oldest on, page by page`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    var expected: [String] = []
    for salt in UInt8(1)...5 {
      let id = try #require(try test.enrol(TestApp(salt: salt)).request)
      expected.append(hex(id.bytes))
      test.wait(seconds: 1)
    }
    var listed: [String] = []
    var query = [("status", "waiting"), ("limit", "2")]
    for _ in expected {
      let page = try test.perform("listRequests", query: query)
      listed += try #require(page["items"]?.elements).compactMap { $0["id"]?.text }
      guard let next = page["next"]?.text else { break }
      query = [("status", "waiting"), ("limit", "2"), ("after", next)]
    }
    #expect(listed == expected)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a decision counts for a day, and a refused request stays refused`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let refused = TestApp(salt: 1)
    let first = try #require(try test.enrol(refused).request)
    try test.fleet.refuse(request: first, reason: "unknown phone", by: test.owner)
    #expect(try test.enrol(refused).reasons == ["refusedRequest"])
    #expect(try test.fleet.status(of: first)?.reason == "unknown phone")
    let late = TestApp(salt: 2)
    let second = try #require(try test.enrol(late).request)
    try test.fleet.approve(request: second, TokenPermission(), by: test.owner)
    test.wait(seconds: 86_399)
    let token = try test.attest(late)
    test.wait(seconds: 1)
    #expect(try test.fleet.status(of: second)?.status == .expired)
    #expect(
      try test.fleet.issue(attestation: token, for: test.device, invitation: nil, wishes: TokenWishes()).reasons
        == ["expiredRequest"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `unknown, blocked and exchanged devices get no token`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let unknown = try TestFleet.device(9)
    #expect(try test.enrol(TestApp(salt: 1), for: unknown).reasons == ["unknownDevice"])
    let exchanged = try DeviceDescriptor(deviceID: test.device.deviceID, publicPoint: unknown.publicPoint)
    #expect(try test.enrol(TestApp(salt: 2), for: exchanged).reasons == ["anotherKey"])
    #expect(throws: AdministrationFault.conflict(.anotherKey)) {
      try test.fleet.register(exchanged, label: "mine", by: test.owner)
    }
    #expect(try test.perform("showDevice", key: hex(test.device.deviceID.bytes))["label"]?.text == "front door")
    try test.fleet.setBlocked(true, test.device.deviceID, by: test.owner)
    #expect(try test.enrol(TestApp(salt: 3)).reasons == ["blockedDevice"])
    try test.fleet.setBlocked(false, test.device.deviceID, by: test.owner)
    #expect(try test.enrol(TestApp(salt: 4)).request != nil)
    #expect(throws: AdministrationFault.notFound) {
      try test.fleet.setBlocked(true, unknown.deviceID, by: test.owner)
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `an attestation token for one device gets nothing for another, and one of another service nothing at all`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let token = try test.attest(TestApp(salt: 1))
    let other = try TestFleet.device(2)
    try test.fleet.register(other, label: nil, by: test.owner)
    #expect(
      try test.fleet.issue(attestation: token, for: other, invitation: nil, wishes: TokenWishes()).reasons
        == ["anotherDevice"])
    let foreign = try TestFleet(database)
    #expect(
      try foreign.fleet.issue(attestation: token, for: test.device, invitation: nil, wishes: TokenWishes()).reasons
        == ["attestation"])
    test.wait(seconds: 331)
    #expect(
      try test.fleet.issue(attestation: token, for: test.device, invitation: nil, wishes: TokenWishes()).reasons
        == ["expired"])
  }

  @Test(arguments: TestedDatabase.installed)
  func `revoking a token, a prover, a user or a device ends what it names, and nothing else`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    var permission = TokenPermission()
    permission.user = "alice"
    let apps = (1...3).map { TestApp(salt: $0, host: $0) }
    let tokens = try apps.map { try #require(try test.enrol($0, invitation: test.invite(permission)).token) }
    let ids = tokens.map { hexadecimal($0.id) }
    func reason(_ text: String) -> JSONValue { .object([("reason", .string(text))]) }
    _ = try test.perform("revokeToken", key: ids[0], body: reason("lost"))
    #expect(try test.enrol(apps[0]).reasons == ["revokedToken"])
    #expect(try test.enrol(apps[1]).token == tokens[1])
    let prover = try #require(try test.perform("showToken", key: ids[1])["prover"]?.text)
    _ = try test.perform("revokeProver", key: prover, body: reason("stolen"))
    #expect(try test.enrol(apps[1]).reasons == ["revokedProver"])
    #expect(try test.enrol(TestApp(salt: 21, host: 2), invitation: test.invite()).reasons == ["revokedProver"])
    #expect(try test.perform("showToken", key: ids[1])["reason"]?.text == "stolen")
    #expect(try test.enrol(apps[2]).token == tokens[2])
    _ = try test.perform("reinstateProver", key: prover)
    #expect(try test.enrol(apps[1]).reasons == ["revokedToken"])
    _ = try test.perform("revokeUser", key: "alice", body: reason("left"))
    #expect(try test.enrol(apps[2]).reasons == ["revokedToken"])
    #expect(try test.enrol(TestApp(salt: 22), invitation: test.invite(permission)).reasons == ["revokedUser"])
    #expect(try test.enrol(TestApp(salt: 23), invitation: test.invite()).token != nil)
    _ = try test.perform("revokeDevice", key: hex(test.device.deviceID.bytes), body: reason("sold"))
    #expect(try test.enrol(TestApp(salt: 24), invitation: test.invite()).reasons == ["blockedDevice"])
    #expect(try test.perform("showDevice", key: hex(test.device.deviceID.bytes))["generation"]?.number == 2)
    #expect(try test.list("listTokens").allSatisfy { $0["revoked"] != .null })
  }

  @Test(arguments: TestedDatabase.installed)
  func `of many provers at once with one invitation, one gets a token`(database: TestedDatabase) async throws {
    let test = try TestFleet(database)
    let code = try test.invite()
    let tokens = try (1...12).map { try test.attest(TestApp(salt: $0, host: $0)) }
    let (fleets, device) = ([test.fleet, try test.instance()], test.device)
    let answers = try await withThrowingTaskGroup(of: TokenAnswer.self) { group in
      for (index, token) in tokens.enumerated() {
        group.addTask {
          try fleets[index % 2].issue(attestation: token, for: device, invitation: code, wishes: TokenWishes())
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(answers.count { $0.token != nil } == 1)
    #expect(answers.count { $0.reasons == ["usedInvitation"] } == 11)
  }

  @Test(arguments: TestedDatabase.installed)
  func `the same request many times at once gets one token`(database: TestedDatabase) async throws {
    let test = try TestFleet(database)
    let code = try test.invite()
    let token = try test.attest(TestApp(salt: 1))
    let (fleets, device) = ([test.fleet, try test.instance()], test.device)
    let tokens = try await withThrowingTaskGroup(of: StoredToken?.self) { group in
      for index in 0..<12 {
        group.addTask {
          try fleets[index % 2].issue(attestation: token, for: device, invitation: code, wishes: TokenWishes()).token
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(tokens.allSatisfy { $0 != nil && $0 == tokens[0] })
    #expect(try test.list("listTokens").count == 1)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a prover that is revoked while it asks has no token that is not revoked`(
    database: TestedDatabase
  ) async throws {
    let test = try TestFleet(database)
    let codes = try (0..<16).map { _ in try test.invite() }
    let tokens = try (0..<16).map { try test.attest(TestApp(salt: UInt8($0 + 1))) }
    let (fleets, device) = ([test.fleet, try test.instance()], test.device)
    let id = try #require(try test.list("listProvers").first?["id"]?.text)
    let prover: HostID = fixed(hex(id))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<16 {
        group.addTask {
          _ = try fleets[index % 2].issue(
            attestation: tokens[index], for: device, invitation: codes[index], wishes: TokenWishes())
        }
        if index == 4 { group.addTask { try fleets[0].revoke(prover: prover, reason: "stolen", by: Actor("owner")) } }
      }
      try await group.waitForAll()
    }
    #expect(try test.list("listTokens").allSatisfy { $0["revoked"] != .null })
  }
}
