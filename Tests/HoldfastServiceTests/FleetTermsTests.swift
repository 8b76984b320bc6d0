import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL
import HoldfastService
import TestSupport
import Testing

@Suite struct FleetTermsTests {
  @Test(arguments: TestedDatabase.installed)
  func `a policy with conditions gives signed terms with each answer, and another policy others`(
    database: TestedDatabase
  ) throws {
    let test = try TestFleet(database)
    let code = try test.invite()
    let app = TestApp(salt: 1)
    let plain = try #require(try test.enrol(app, invitation: code).token)
    #expect(plain.terms == nil)
    var policy = try #require(try test.perform("showPolicy").members)
    policy += [
      ("offline_seconds", .integer(3600)),
      ("settings", .object([("type", .string("text")), ("value", .string("YT0x"))])),
    ]
    _ = try test.perform("setPolicy", body: .object([("policy", .object(policy))]))
    test.wait(seconds: 60)
    let again = try #require(try test.enrol(app, invitation: code).token)
    #expect(again.bytes == plain.bytes)
    let signed = try SignedTerms(verifying: try #require(again.terms))
    #expect(signed.terms.issued == TestFleet.now + 60)
    #expect(signed.terms.offlineUntil == TestFleet.now + 3660)
    #expect(signed.terms.conditions.settings?.text == "a=1")
    #expect(try test.fleet.issuerKeys().map(\.point).contains(signed.key.point))
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    let bytes = again.bytes
    hash.append(bytes.span)
    #expect(signed.terms.tokenDigest == (try hash.finish() as Digest))
  }

  @Test(arguments: [
    ("offline_seconds", JSONValue.integer(0)), ("settings", .string("a=1")),
    ("settings", .object([("type", .string("json")), ("value", .string("e30"))])),
    ("settings", .object([("type", .string("json")), ("value", .string("ezE="))])),
    ("compliance", .array([.object([("subject", .string("app"))])])),
  ])
  func `a policy with a mistake in its conditions is refused, and the present one stays`(
    name: String, value: JSONValue
  ) throws {
    let test = try TestFleet(.sqlite)
    let policy = try #require(try test.perform("showPolicy").members)
    #expect(throws: (any Error).self) {
      try test.perform("setPolicy", body: .object([("policy", .object(policy + [(name, value)]))]))
    }
    #expect(try test.perform("showPolicy").members?.count == policy.count)
  }
}
