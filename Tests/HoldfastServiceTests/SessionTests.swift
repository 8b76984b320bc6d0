import HoldfastCore
import HoldfastFormats
import HoldfastService
import TestPostgreSQL
import TestSupport
import Testing

/// The sessions of the console.
@Suite struct SessionTests {
  private static let hour: UInt64 = 3600

  private static func operatorToken(_ test: TestFleet, for seconds: UInt64? = nil) throws -> String {
    try test.fleet.addOperator("olga", scopes: [.read, .revoke], for: seconds, by: test.owner)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a session stands for its operator at every instance until its time is over`(_ database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let other = try test.instance()
    let token = try Self.operatorToken(test)
    let secret = try #require(try test.fleet.beginSession(token: token, for: Self.hour))
    #expect(secret.utf8.count == 64 && !token.contains(secret))
    let session = try #require(try other.session(secret))
    #expect(session.caller.name == "olga" && session.caller.scopes == [.read, .revoke])
    test.wait(seconds: Self.hour - 1)
    #expect(try other.session(secret) != nil)
    test.wait(seconds: 1)
    #expect(try other.session(secret) == nil)
    #expect(try test.fleet.session(secret) == nil)
  }

  @Test(arguments: TestedDatabase.installed)
  func `a session ends with its operator, with its token, and when it is ended`(_ database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let other = try test.instance()
    let token = try Self.operatorToken(test, for: 600)
    let ended = try #require(try test.fleet.beginSession(token: token, for: Self.hour))
    let kept = try #require(try test.fleet.beginSession(token: token, for: Self.hour))
    try other.endSession(ended)
    #expect(try test.fleet.session(ended) == nil)
    #expect(try test.fleet.session(kept) != nil)
    test.wait(seconds: 600)
    #expect(try test.fleet.session(kept) == nil)
    let next = try test.fleet.addOperator("nora", scopes: [.admin], for: nil, by: test.owner)
    let session = try #require(try test.fleet.beginSession(token: next, for: Self.hour))
    try other.removeOperator("nora", by: test.owner)
    #expect(try test.fleet.session(session) == nil)
    #expect(try test.fleet.beginSession(token: next, for: Self.hour) == nil)
  }

  @Test(arguments: TestedDatabase.installed)
  func `another text is no session, and the text for forms is of one session only`(_ database: TestedDatabase) throws {
    let test = try TestFleet(database)
    let token = try Self.operatorToken(test)
    #expect(try test.fleet.beginSession(token: token + "0", for: Self.hour) == nil)
    let secrets = try (0..<2).map { _ in try #require(try test.fleet.beginSession(token: token, for: Self.hour)) }
    for wrong in [
      "", token, String(secrets[0].dropLast()), secrets[0].uppercased(), String(repeating: "0", count: 64),
      String(repeating: "'", count: 64),
    ] where wrong != secrets[0] {
      #expect(try test.fleet.session(wrong) == nil)
    }
    let sessions = try secrets.map { try #require(try test.fleet.session($0)) }
    #expect(sessions[0].formToken != sessions[1].formToken && sessions[0].formToken != secrets[0])
    #expect(sessions[0].accepts(formToken: sessions[0].formToken))
    for wrong in ["", String(sessions[0].formToken.dropLast()), sessions[1].formToken, secrets[0]] {
      #expect(!sessions[0].accepts(formToken: wrong))
    }
    let changes = try test.list("listChanges").filter { $0["action"] == .string("session.begin") }
    #expect(changes.count == 2 && changes.allSatisfy { $0["actor"] == .string("olga") })
  }
}
