import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import TestSupport
import Testing

@Suite struct DevicePolicyTests {
  private func parse(_ text: String) throws(PolicyFault) -> DevicePolicy {
    try DevicePolicy(json: Array(text.utf8))
  }

  private func isUnexpected(_ body: () throws -> DevicePolicy) -> Bool {
    do { _ = try body() } catch { if case PolicyFault.unexpected = error { return true } }
    return false
  }

  private func isMalformed(_ body: () throws -> DevicePolicy) -> Bool {
    do { _ = try body() } catch { if case PolicyFault.malformed = error { return true } }
    return false
  }

  /// A policy of several lines; what is to be replaced in it is there once.
  private static let lines = """
    {
      "version": 1,
      "minimum_version": [1, 2, 3],
      "codes": {
        "counter_look_ahead": 10
      },
      "commands": {
        "unlock": {
          "factors": ["integrity", "device"]
        },
        "lock": {"factors": []}
      }
    }
    """

  @Test(arguments: [
    ("integrity\", \"device", "integrity\", \"devise", "commands.unlock.factors[1]", 9),
    ("integrity\", \"device", "device\", \"device", "commands.unlock.factors[1]", 9),
    ("{\"factors\": []}", "{\"facters\": []}", "commands.lock.facters", 11),
    ("{\"factors\": []}", "{}", "commands.lock.factors", 11), ("{\"factors\": []}", "7", "commands.lock", 11),
    ("\"factors\": []", "\"factors\": {}", "commands.lock.factors", 11), ("\"version\": 1,", "", "version", 1),
    ("\"version\": 1", "\"version\": 0", "version", 2), ("[1, 2, 3]", "[1, 2]", "minimum_version", 3),
    ("[1, 2, 3]", "[1, 2, \"x\"]", "minimum_version[2]", 3), ("10", "101", "codes.counter_look_ahead", 5),
    ("\"lock\"", "\"\"", "commands.", 11), ("\"codes\"", "\"cods\"", "cods", 4),
    // Not JSON at all.
    ("[1, 2, 3]", "[1, 2 3]", "minimum_version", 3), ("\"lock\"", "\"unlock\"", "commands.unlock", 11),
    ("10", "1.5", "codes.counter_look_ahead", 5), ("\"factors\": []", "'factors': []", "commands.lock", 11),
  ])
  func `a mistake has the way to its member, and its line`(
    right: String, wrong: String, path: String, line: Int
  ) throws {
    let text = Self.lines.replacing(right, with: wrong)
    #expect(text != Self.lines)
    let fault = try #require(throws: PolicyFault.self) { try parse(text) }
    switch fault {
    case .malformed(let mistake), .unexpected(let mistake):
      #expect(mistake.line == line)
      #expect(mistake.pathText == path)
    default: Issue.record("\(fault)")
    }
  }

  @Test func `an introducer is named by the sixteen digits of its key's id`() throws {
    let mistake = JSONMistake(
      at: [.member("introducers"), .element(0)], expected: .hexadecimal(digitCount: 16), line: 1)
    #expect(throws: PolicyFault.unexpected(mistake)) {
      try parse(#"{"version": 1, "introducers": ["01"], "commands": {}}"#)
    }
  }

  @Test func `up to 64 introducers are read back, and none is named twice`() throws {
    func policy(_ ids: [String]) throws(PolicyFault) -> DevicePolicy {
      let list = ids.map { "\"\($0)\"" }.joined(separator: ",")
      return try parse("{\"version\": 1, \"introducers\": [\(list)], \"commands\": {}}")
    }
    let ids = (0..<65 as Range<UInt8>).map { hex([0, 0, 0, 0, 0, 0, 0, $0] as [UInt8]) }
    let all = try policy(Array(ids.prefix(64)))
    #expect(all.introducers.count == 64 && all.mayIntroduce(fixed([0, 0, 0, 0, 0, 0, 0, 63])))
    #expect(try DevicePolicy(json: all.json()) == all)
    for (ids, place) in [(ids, 64), ([ids[3], ids[4], ids[3]], 2)] {
      let mistake = JSONMistake(
        at: [.member("introducers"), .element(place)], expected: .hexadecimal(digitCount: 16), line: 1)
      #expect(throws: PolicyFault.unexpected(mistake)) { try policy(ids) }
    }
  }

  @Test func `what init writes needs integrity and device, and for status the device alone`() throws {
    let policy = try DevicePolicy(json: DevicePolicy.forSimulatedLock.json())
    #expect(policy == .forSimulatedLock)
    #expect(policy.rule(for: BoundedText("unlock"))?.factors == [.integrity, .device])
    #expect(policy.rule(for: BoundedText("lock"))?.factors == [.integrity, .device])
    #expect(policy.rule(for: BoundedText("status"))?.factors == .device)
    #expect(policy.rule(for: BoundedText("open")) == nil)
    #expect(policy.commonFactors == .device)
    #expect(!policy.acceptsUnsigned && !policy.acceptsMAC)
    #expect(!policy.allowsCompatibility)
    #expect(policy.maximumIssueAdvanceSeconds == 400 * 86_400)
  }

  @Test func `what a policy does not say it does not allow`() throws {
    let policy = try parse(#"{"version": 1, "commands": {"a": {"factors": []}}}"#)
    #expect(!policy.acceptsUnsigned)
    #expect(!policy.allowsCompatibility)
    #expect(policy.limits == TokenLimits())
    #expect(DevicePolicy.denyAll.commonFactors == [])
  }

  @Test func `tokens under a MAC are allowed by one member alone, which a policy without it does not write`() throws {
    func policy(_ issuer: String) throws(PolicyFault) -> DevicePolicy {
      try parse(#"{"version": 1, \#(issuer) "commands": {}}"#)
    }
    #expect(try policy(#""issuer": {"mac": true},"#).acceptsMAC)
    for issuer in [#""issuer": {"mac": false},"#, #""issuer": {},"#, ""] {
      #expect(try !policy(issuer).acceptsMAC)
    }
    for issuer in ["true", "[]", "null", #""mac""#, #"{"mac": 1}"#, #"{"mac": "true"}"#, #"{"mac": null}"#] {
      #expect(isUnexpected { try policy(#""issuer": \#(issuer),"#) })
    }
    for issuer in [#"{"mac": true, "jose": true}"#, #"{"MAC": true}"#, #"{"sign": true}"#] {
      #expect(isUnexpected { try policy(#""issuer": \#(issuer),"#) })
    }
    #expect(isMalformed { try policy(#""issuer": {"mac": false, "mac": true},"#) })
    #expect(try DevicePolicy(json: DevicePolicy(acceptsMAC: true).json()).acceptsMAC)
    #expect(!String(decoding: DevicePolicy.forSimulatedLock.json(), as: UTF8.self).contains("issuer"))
  }

  @Test func `the audit log is bounded by one member, which a policy without it does not write`() throws {
    func policy(_ audit: String) throws(PolicyFault) -> DevicePolicy {
      try parse(#"{"version": 1, \#(audit) "commands": {}}"#)
    }
    #expect(try policy("").auditRules.bound == nil)
    #expect(try policy(#""audit": {"entries": 1000},"#).auditRules.bound == 1000)
    for audit in [
      "{}", "1000", "[]", "null", #"{"entries": 999}"#, #"{"entries": 0}"#, #"{"entries": "1000"}"#,
      #"{"entries": null}"#, #"{"entries": 1000, "bytes": 1}"#, #"{"Entries": 1000}"#,
      #"{"entries": 1000, "when_full": "drop"}"#, #"{"home": "0102030405060708", "when_full": "drop"}"#,
    ] {
      #expect(isUnexpected { try policy(#""audit": \#(audit),"#) })
    }
    for number in ["-1", "9007199254740992", "1000.5"] {
      #expect(isMalformed { try policy(#""audit": {"entries": \#(number)},"#) })
    }
    #expect(isMalformed { try policy(#""audit": {"entries": 1000, "entries": 2000},"#) })
    for audit in [
      #"{"entries": 5000}"#, #"{"home": "0102030405060708"}"#, #"{"entries": 5000, "home": "0102030405060708"}"#,
      #"{"entries": 5000, "home": "0102030405060708", "when_full": "refuse"}"#,
    ] {
      let policy = try policy("\"audit\": \(audit),")
      #expect(try DevicePolicy(json: policy.json()) == policy, "\(audit)")
      #expect((policy.auditRules.bound ?? 5000) == 5000 && policy.auditRules != AuditRules())
    }
    #expect(!String(decoding: DevicePolicy.forSimulatedLock.json(), as: UTF8.self).contains("audit"))
  }

  @Test func `a token's iat is nowhere more than a century ahead`() {
    var policy = DevicePolicy.denyAll
    policy.maximumIssueAdvanceDays = .max
    #expect(policy.maximumIssueAdvanceSeconds == 36_500 * 86_400)
  }

  @Test func `a command's own limits take the place of the file's`() throws {
    let policy = try parse(
      #"""
      {"version": 1, "accept_unsigned": true, "generation_floor": 3, "minimum_version": [1, 2, 3],
       "maximum_age_seconds": 60, "maximum_issue_advance_days": 7, "commands": {
         "a": {"factors": ["seal", "otp"], "compatibility": true},
         "b": {"factors": [], "generation_floor": 0, "minimum_version": [0, 0, 0], "maximum_age_seconds": null}}}
      """#)
    let limits = TokenLimits(
      generationFloor: 3, minimumVersion: AppVersion(major: 1, minor: 2, patch: 3), maximumAgeSeconds: 60)
    #expect(policy.limits == limits)
    #expect(
      policy.rule(for: BoundedText("a"))
        == CommandRule(factors: [.otp, .seal], limits: limits, allowsCompatibility: true))
    #expect(policy.rule(for: BoundedText("b")) == CommandRule(factors: []))
    #expect(policy.maximumIssueAdvanceSeconds == 7 * 86_400)
    #expect(policy.acceptsUnsigned)
    #expect(policy.commonFactors == [])
    #expect(try DevicePolicy(json: policy.json()) == policy)
  }

  @Test func `development tokens are accepted only if the policy says so, and it is written only then`() throws {
    let plain = try parse(#"{"version": 1, "commands": {}}"#)
    #expect(!plain.acceptsDevelopment)
    #expect(!String(decoding: plain.json(), as: UTF8.self).contains("accept_development"))
    let policy = try parse(#"{"version": 1, "commands": {}, "accept_development": true}"#)
    #expect(policy.acceptsDevelopment)
    #expect(try DevicePolicy(json: policy.json()) == policy)
    #expect(isUnexpected { try parse(#"{"version": 1, "commands": {}, "accept_development": 1}"#) })
  }

  @Test(arguments: [
    #"{"commands": {}}"#, #"{"version": 1}"#, #"{"version": 0, "commands": {}}"#,
    #"{"version": 1, "commands": {}, "other": 1}"#, #"{"version": 1, "commands": []}"#,
    #"{"version": 1, "commands": {"": {"factors": []}}}"#, #"{"version": 1, "commands": {"a": {}}}"#,
    #"{"version": 1, "commands": {"a": {"factors": ["luck"]}}}"#,
    #"{"version": 1, "commands": {"a": {"factors": ["otp", "otp"]}}}"#,
    #"{"version": 1, "commands": {"a": {"factors": [], "users": 1}}}"#,
    #"{"version": 1, "commands": {"a": {"factors": [], "compatibility": 1}}}"#,
    #"{"version": 1, "commands": {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": {"factors": []}}}"#,
    #"{"version": 1, "commands": {}, "accept_unsigned": null}"#,
    #"{"version": 1, "commands": {}, "minimum_version": [1, 2]}"#,
    #"{"version": 1, "commands": {}, "minimum_version": [1, 2, 3, "4"]}"#,
    #"{"version": 1, "commands": {}, "maximum_age_seconds": false}"#,
    #"{"version": 1, "commands": {}, "maximum_issue_advance_days": 36501}"#, "[]",
  ])
  func `a member that is missing, unknown or of another kind is refused`(text: String) {
    #expect(isUnexpected { try parse(text) })
  }

  @Test(arguments: [
    "", "{", #"{"version": 1, "commands": {}} x"#, #"{"version": 1, "version": 1, "commands": {}}"#,
    #"{"version": 1, "commands": {"a": {"factors": []}, "\u0061": {"factors": []}}}"#,
    #"{"version": 1, "commands": {}, "generation_floor": -1}"#,
  ])
  func `what is not strict JSON is malformed`(text: String) {
    #expect(isMalformed { try parse(text) })
  }

  @Test func `a policy of a later version is not guessed at`() {
    #expect(throws: PolicyFault.newerVersion) { try parse(#"{"version": 2, "orders": {}}"#) }
  }

  @Test func `256 commands are read and 257 are not`() throws {
    func text(_ count: Int) -> String {
      let commands = (0..<count).map { #""c\#($0)": {"factors": []}"# }.joined(separator: ",")
      return #"{"version": 1, "commands": {\#(commands)}}"#
    }
    #expect(try parse(text(256)).commands.count == 256)
    #expect(isUnexpected { try parse(text(257)) })
  }

  @Test func `a rule says how the audit log keeps parameters, and the commands that nobody carries out are found`()
    throws
  {
    func policy(_ member: String) throws -> DevicePolicy {
      try parse(#"{"version": 1, "commands": {"unlock": {"factors": []\#(member)}, "pump": {"factors": []}}}"#)
    }
    var request = Request(command: "unlock")
    try request.append(parameter: "7")
    let digest = AuditedParameter(
      index: 0, .digest(fixed(hex("7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451"))))
    #expect(try policy("").auditedParameters(of: request) == [digest])
    #expect(try policy(#", "audit": "digest""#).auditedParameters(of: request) == [digest])
    let text = try policy(#", "audit": "text""#)
    #expect(try text.auditedParameters(of: request) == [AuditedParameter(index: 0, .text("7"))])
    #expect(try DevicePolicy(json: text.json()) == text)
    for wrong in [#", "audit": "none""#, #", "audit": true"#] {
      #expect(isUnexpected { try policy(wrong) })
    }
    var user = Request(command: UserCommandName.synchronise)
    try user.append(parameter: "ann")
    #expect(try text.auditedParameters(of: user).isEmpty)
    struct Bolt: Lock {
      let current = LockState.locked
      mutating func move(to target: LockState) throws(ActuatorFailure) {}
    }
    #expect(text.commandsNotCarriedOut(by: LockActuator(Bolt())) == ["pump"])
    #expect(DevicePolicy.forSimulatedLock.commandsNotCarriedOut(by: LockActuator(Bolt())).isEmpty)
  }
}
