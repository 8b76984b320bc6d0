import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastService
import HoldfastStorage
import TestSupport
import Testing

@Suite struct FleetTests {
  @Test(arguments: TestedDatabase.installed)
  func `a service is created once, and opened only with its key`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    #expect(throws: FleetFault.alreadyCreated) {
      try Fleet.create(
        in: test.location, serviceKey: ServiceKey(secret(TestFleet.serviceKey)), policy: ServicePolicy(), by: test.owner
      )
    }
    #expect(throws: FleetFault.wrongServiceKey) { _ = try test.instance(key: [UInt8](repeating: 1, count: 32)) }
  }

  /// The tables as somebody sees them who has access to the database.
  private static func tables(of test: TestFleet) throws -> SQLDatabase {
    try SQLDatabase(
      test.location, applicationID: FleetSchema.applicationID, schema: FleetSchema.scripts, creating: false)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a changed policy and a new key count for every instance at once`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let other = try test.instance()
    var policy = ServicePolicy()
    policy.tokenSeconds = 60
    try test.fleet.setPolicy(policy, by: test.owner)
    let token = try #require(try test.enrol(TestApp(salt: 1), invitation: test.invite(), at: other).token)
    #expect(token.claims["expires"]?.number == TestFleet.now + 60)
    let id = try test.fleet.rotateIssuerKey(active: TestFleet.now + 100, by: test.owner)
    let keys = try other.issuerKeys()
    #expect(keys.count == 2 && keys.last?.id == id)
    func signer(_ salt: UInt8) throws -> String? {
      let token = try #require(try test.enrol(TestApp(salt: salt), invitation: test.invite(), at: other).token)
      return try test.perform("showToken", key: hexadecimal(token.id))["signer"]?.text
    }
    #expect(try signer(2) == hex(keys[0].id.bytes))
    test.wait(seconds: 100)
    #expect(try signer(3) == hex(id.bytes))
  }

  @Test(arguments: TestedDatabase.installed)
  func `a change that was lost with a server is not taken for the one that was made in its place`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let other = try test.instance()
    let tables = try Self.tables(of: test)
    func setTokenSeconds(_ seconds: UInt64) throws {
      var policy = ServicePolicy()
      policy.tokenSeconds = seconds
      try test.fleet.setPolicy(policy, by: test.owner)
    }
    let before = try tables.read { session throws(SQLFault) -> [Value] in
      guard let row = try session.row("SELECT value, revision FROM settings WHERE name = 'policy'") else { return [] }
      return [.bytes(try row.bytes(0)), .unsigned(try row.unsigned(1))]
    }
    try setTokenSeconds(60)
    #expect(try other.policy().tokenSeconds == 60)
    // The row is as on a server that this change did not reach.
    try tables.transaction { session throws(SQLFault) in
      _ = try session.execute("UPDATE settings SET value = $1, revision = $2 WHERE name = 'policy'", values: before)
    }
    try setTokenSeconds(70)
    #expect(try other.policy().tokenSeconds == 70)
  }

  @Test(arguments: TestedDatabase.installed)
  func `every change is in the log with the one who made it, and the log cannot be changed`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    try test.fleet.setBlocked(true, test.device.deviceID, by: Actor("carol"))
    let changes = try test.list("listChanges")
    #expect(
      changes.compactMap { $0["action"]?.text } == ["device.block", "image.approve", "device.add", "service.create"])
    #expect(changes.first?["actor"]?.text == "carol")
    let tables = try Self.tables(of: test)
    for sql in ["UPDATE changes SET actor = 'x'", "DELETE FROM changes"] as [StaticString] {
      #expect(throws: SQLFault.constraint) {
        try tables.transaction { session throws(SQLFault) in _ = try session.run(sql) }
      }
    }
  }

  @Test(arguments: TestedDatabase.installed)
  func `an operator's token counts until it expires or is revoked`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let token = try test.fleet.addOperator("dave", scopes: [.read, .approve], for: 60, by: test.owner)
    #expect(try test.fleet.authenticate(token)?.name == "dave")
    #expect(try test.fleet.authenticate(token)?.scopes == [.read, .approve, .report])
    #expect(try test.fleet.authenticate(String(token.dropLast()) + "x") == nil)
    #expect(try test.fleet.authenticate("") == nil)
    #expect(throws: AdministrationFault.conflict(.existingOperator)) {
      _ = try test.fleet.addOperator("dave", scopes: [.admin], for: nil, by: test.owner)
    }
    test.wait(seconds: 60)
    #expect(try test.fleet.authenticate(token) == nil)
    let other = try test.fleet.addOperator("erin", scopes: [.read], for: nil, by: test.owner)
    try test.fleet.removeOperator("erin", by: test.owner)
    #expect(try test.fleet.authenticate(other) == nil)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a listing has every record once, page by page`(database: TestedDatabase) throws {
    let test = try TestFleet(database)
    for number in 2...25 { try test.fleet.register(TestFleet.device(UInt8(number)), label: nil, by: test.owner) }
    var ids: [String] = []
    var query = [("limit", "7")]
    repeat {
      let page = try test.perform("listDevices", query: query)
      ids += page["items"]?.elements?.compactMap { $0["id"]?.text } ?? []
      query = page["next"]?.text.map { [("limit", "7"), ("after", $0)] } ?? []
    } while !query.isEmpty
    #expect(ids.count == 25 && ids == ids.sorted() && Set(ids).count == 25)
    let changes = try test.perform("listChanges", query: [("limit", "3")])
    let next = try #require(changes["next"]?.text)
    let more = try test.perform("listChanges", query: [("limit", "3"), ("after", next)])
    let numbers = [changes, more].flatMap { $0["items"]?.elements?.compactMap { $0["number"]?.number } ?? [] }
    #expect(numbers == numbers.sorted(by: >) && Set(numbers).count == 6)
  }

  @Test func `a request with an unknown, repeated, missing or malformed parameter changes nothing`() throws {
    let test = try TestFleet(.sqlite)
    let id = hex(test.device.deviceID.bytes)
    func isRefused(
      _ name: String, key: String? = nil, query: [(String, String)] = [], _ body: JSONValue? = nil
    ) -> Bool {
      do {
        _ = try test.perform(name, key: key, query: query, body: body)
        return false
      } catch AdministrationFault.mistake { return true } catch { return false }
    }
    let before = try test.perform("listChanges")
    #expect(isRefused("listDevices", query: [("limt", "1")]))
    for number in ["0", "01", "+1", "12345678901234567", "18446744073709551615", "18446744073709551617"] {
      #expect(isRefused("listDevices", query: [("limit", number)]), "\(number)")
    }
    #expect(isRefused("listDevices", query: [("limit", "1"), ("limit", "2")]))
    #expect(isRefused("revokeDevice", key: id, .object([])))
    #expect(isRefused("revokeDevice", key: id, .object([("reason", .string("x")), ("force", .bool(true))])))
    #expect(isRefused("invite", .object([("device", .string("00")), ("valid_seconds", .integer(60))])))
    #expect(isRefused("invite", .object([("device", .string(id)), ("valid_seconds", .integer(59))])))
    #expect(isRefused("addOperator", .object([("name", .string("x")), ("scopes", .array([.string("root")]))])))
    #expect(isRefused("setPolicy", .object([("policy", .object([("issuer", .integer(1))]))])))
    let commands = JSONValue.array([.string(String(repeating: "\u{1F512}", count: 9))])
    let key = JSONValue.object([
      ("kty", .string("EC")), ("crv", .string("P-256")), ("x", .string(String(repeating: "A", count: 43))),
      ("y", .string(String(repeating: "A", count: 43))),
    ])
    let device = JSONValue.object([
      ("device_id", .string(id)), ("kid", .string("0011223344556677")), ("public_key", key),
    ])
    #expect(throws: AdministrationFault.conflict(.severalFilters)) {
      _ = try test.perform("listTokens", query: [("device", id), ("user", "alice")])
    }
    #expect(throws: AdministrationFault.conflict(.tooLong)) {
      _ = try test.perform(
        "invite",
        body: .object([("device", .string(id)), ("valid_seconds", .integer(60)), ("commands", commands)]))
    }
    #expect(throws: AdministrationFault.conflict(.invalidKey)) {
      _ = try test.perform("addDevice", body: .object([("device", device)]))
    }
    #expect(throws: AdministrationFault.notFound) { _ = try test.perform("showDevice", key: "zz") }
    #expect(throws: AdministrationFault.notFound) { _ = try test.perform("showUser", key: "nobody") }
    #expect(throws: AdministrationFault.notFound) {
      _ = try test.perform("revokeUser", key: "a\u{9b}b", body: .object([("reason", .string("x"))]))
    }
    #expect(try test.perform("listChanges") == before)
  }

  @Test func `each operation has its own name and address, and reading permits no change`() {
    let all = AdministrationOperation.all
    #expect(Set(all.map { $0.name }).count == all.count)
    #expect(Set(all.map { "\($0.method) \($0.path)" }).count == all.count)
    #expect(all.filter { $0.method == .get && $0.scope != .read }.map { $0.name } == ["listOperators", "showOperator"])
    #expect(all.filter { $0.method != .get }.allSatisfy { $0.scope != .read })
  }

  @Test func `a code that a person types is read in either case, with or without hyphens`() throws {
    var random = TestRandom()
    let code = try InvitationCode(random: &random)
    #expect(code.text.utf8.count == 23)
    #expect(InvitationCode(code.text.lowercased()) == code)
    #expect(InvitationCode(code.text.filter { $0 != "-" }) == code)
    for wrong in [
      "", "AAAAA", code.text + "A", code.text.dropLast() + "1", code.text + String(repeating: " ", count: 64),
    ] {
      #expect(InvitationCode(wrong) == nil)
    }
  }
}
