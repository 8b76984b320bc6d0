import HoldfastFirmware
import HoldfastFormats
import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// Rules on the parameters of a command, and further factors in certain circumstances.
@Suite struct CommandConditionsTests {
  private func policy(_ members: String, factors: String = #""device""#) throws(PolicyFault) -> DevicePolicy {
    let text = #"{"version": 1, "commands": {"open-safe": {"factors": [\#(factors)], \#(members)}}}"#
    return try DevicePolicy(json: Array(text.utf8))
  }

  private func device(_ members: String) throws -> TestDevice {
    let device = try TestDevice()
    device.policy = try policy(members)
    try device.add()
    return device
  }

  private func open(
    _ device: TestDevice, _ parameters: String..., as prover: TestProver? = nil, otp: UserCode? = nil
  ) throws -> TestVerdict {
    try device.connect().round(prover ?? device.prover(), "open-safe", parameters: parameters, otp: otp)
  }

  @Test func `parameters must be as many as the rule has places, and each as its place says`() throws {
    let device = try device(
      #""parameters": [{"one_of": ["left", "ré"]}, {"range": [5, 100]}, {"optional": true}]"#)
    func isAllowed(_ parameters: String...) throws -> Bool {
      let verdict = try device.connect().round(device.prover(), "open-safe", parameters: parameters)
      #expect(verdict.status == .accepted || (verdict.status, verdict.result) == (.commandRefused, "notInPolicy"))
      return verdict.status == .accepted
    }
    #expect(try isAllowed("left", "5"))
    #expect(try isAllowed("ré", "100", "anything"))
    for wrong in ["4", "101", "05", "+5", " 5", "5 ", "5.0", "", "0x10", "٥", "99999999999999999999"] {
      #expect(try !isAllowed("left", wrong), "\(wrong)")
    }
    #expect(try !isAllowed("Left", "5") && !isAllowed("right", "5") && !isAllowed("re\u{301}", "5"))
    #expect(try !isAllowed() && !isAllowed("left") && !isAllowed("left", "5", "a", "b"))
    device.policy = try policy(#""parameters": []"#)
    #expect(try isAllowed() && !isAllowed(""))
  }

  @Test func `an app from the minimum version up to the maximum is taken, and none from the maximum on`() throws {
    let device = try device(#""minimum_version": [1, 2, 0], "maximum_version": [2, 0, 0]"#)
    let cases: [((UInt64, UInt64, UInt64)?, Status)] = [
      (nil, .versionTooOld), ((1, 1, 9), .versionTooOld), ((1, 2, 0), .accepted), ((1, 99, 99), .accepted),
      ((2, 0, 0), .commandRefused), ((2, 0, 1), .commandRefused), ((3, 0, 0), .commandRefused),
    ]
    for (version, status) in cases {
      let verdict = try open(device, as: device.prover { $0.version = version })
      #expect(verdict.status == status, "\(version.map { "\($0)" } ?? "none")")
      if status == .commandRefused { #expect(verdict.result == "notInPolicy") }
    }
    #expect(try DevicePolicy(json: device.policy.json()) == device.policy)
    let hasRoomOnBoard = FirmwarePolicy(device.policy) != nil
    #expect(!hasRoomOnBoard)
    for wrong in ["[1, 2]", "[1, 2, 3, 4]", #""2.0.0""#, "null", "[1, 2, -1]", "[1, 2, 9007199254740992]"] {
      #expect(throws: PolicyFault.self, "\(wrong)") { try policy("\"maximum_version\": \(wrong)") }
    }
  }

  @Test func `a value above the limit needs more, and so does one that is missing or no number`() throws {
    let device = try device(#""step_up": [{"above": {"parameter": 2, "value": 1000}, "factors": ["otp"]}]"#)
    for amount in ["0", "999", "1000"] { #expect(try open(device, "a", amount).status == .accepted) }
    for amount in ["1001", "9007199254740991", "9007199254740992", "0999", "-1", "1e2", "", "one"] {
      let verdict = try open(device, "a", amount)
      #expect(verdict.status == .factorMissing && verdict.notice?.missingFactors == .otp, "\(amount)")
    }
    #expect(try open(device, "a").status == .factorMissing)
    #expect(try open(device, "a", "5000", otp: try password(0)).status == .accepted)
    #expect(try open(device, "a", "5000", otp: try password(0)).status == .otpRejected)
    // A password that is not needed is not looked at.
    #expect(try open(device, "a", "5", otp: try password(0)).status == .accepted)
    #expect(try device.lastEvents(1) != [])
  }

  @Test func `outside the hours, and with a clock that has lost the time, more is needed`() throws {
    // The time of the tests is 15:06:40.
    func status(_ hours: String, at seconds: UInt64 = testTime) throws -> Status {
      let device = try device(#""step_up": [{"outside_hours": \#(hours), "factors": ["otp"]}]"#)
      device.clock.seconds = seconds
      return try open(device).status
    }
    for hours in [
      #"["15:06", "15:07"]"#, #"["08:00", "24:00"]"#, #"["00:00", "15:07"]"#, #"["22:00", "15:07"]"#,
      #"["15:06", "03:00"]"#,
    ] {
      #expect(try status(hours) == .accepted, "\(hours)")
    }
    for hours in [#"["15:07", "18:00"]"#, #"["08:00", "15:06"]"#, #"["22:00", "15:06"]"#, #"["15:07", "03:00"]"#] {
      #expect(try status(hours) == .factorMissing, "\(hours)")
    }
    #expect(try status(#"["08:00", "24:00"]"#, at: testTime - 3600) == .factorMissing)
  }

  @Test func `a token that is older than the rule says needs more`() throws {
    let device = try device(#""step_up": [{"token_older_than_seconds": 100, "factors": ["otp"]}]"#)
    let prover = try device.prover { $0.issuedAt = testTime - 100 }
    #expect(try open(device, as: prover).status == .accepted)
    device.clock.seconds = testTime + 1
    #expect(try open(device, as: prover).status == .factorMissing)
    #expect(try open(device, as: prover, otp: try password(0)).status == .accepted)
    #expect(try open(device, as: prover).status == .factorMissing)
  }

  @Test func `a token's first use needs more, of each command, until it was accepted with all of it`() throws {
    let device = try device(#""step_up": [{"first_use": true, "factors": ["otp"]}]"#)
    device.policy.commands[BoundedText("status")] = CommandRule(factors: [.device])
    let (first, other) = (try device.prover(), try device.prover { $0.tokenID = TokenID(filledWith: 9) })
    #expect(try device.connect().round(first, "status").status == .accepted)
    #expect(try open(device, as: first).status == .factorMissing)
    #expect(try open(device, as: first, otp: UserCode(user: ann, code: BoundedText("000000"))).status == .otpRejected)
    #expect(try open(device, as: first).status == .factorMissing)
    #expect(try open(device, as: first, otp: try password(0)).status == .accepted)
    for _ in 0..<2 { #expect(try open(device, as: first).status == .accepted) }
    #expect(try open(device, as: other).status == .factorMissing)
    try device.reopenLedger()
    #expect(try open(device, as: first).status == .accepted)
    // The same token at another command, and a ledger that knows nothing.
    device.policy.commands[BoundedText("lock")] = CommandRule(factors: [.device])
    device.policy.conditions[BoundedText("lock")] = device.policy.conditions[BoundedText("open-safe")]
    #expect(try device.connect().round(first, "lock").status == .factorMissing)
  }

  @Test func `the first uses of a token are forgotten with the first use of another after its end`() throws {
    let device = try device(#""step_up": [{"first_use": true, "factors": ["otp"]}]"#)
    for (number, end) in [(0, testTime + 100), (1, testTime + 300)] as [(UInt64, UInt64)] {
      let prover = try device.prover {
        ($0.tokenID, $0.issuedAt, $0.expires) = (TokenID(filledWith: UInt8(number)), testTime + 100 * number, end)
      }
      #expect(try open(device, as: prover, otp: try password(number)).status == .accepted)
      let count = try device.ledger.read { (tables) throws(DatabaseError) in
        try tables.database.oneUnsigned("SELECT count(*) FROM introductions")
      }
      #expect(count == 1)
    }
  }

  @Test func `a text that is named twice is said with its place`() throws {
    let place: [JSONMistake.Step] = [
      .member("commands"), .member("open-safe"), .member("parameters"), .element(0), .member("one_of"), .element(2),
    ]
    let mistake = JSONMistake(at: place, expected: .form("a text of at most 64 bytes that is named once"), line: 1)
    #expect(throws: PolicyFault.unexpected(mistake)) { try policy(#""parameters": [{"one_of": ["a", "b", "a"]}]"#) }
  }

  @Test func `several circumstances ask for the sum of their factors`() throws {
    let device = try device(
      #"""
      "step_up": [{"above": {"parameter": 1, "value": 10}, "factors": ["otp"]},
        {"above": {"parameter": 1, "value": 100}, "factors": ["seal", "integrity"]}]
      """#)
    #expect(try open(device, "10").status == .accepted)
    #expect(try open(device, "100").notice?.missingFactors == .otp)
    #expect(try open(device, "101").notice?.missingFactors == [.otp, .seal])
  }

  @Test func `a policy with conditions reads back as it was written`() throws {
    let policy = try policy(
      #"""
      "parameters": [{"one_of": ["a", ""]}, {"range": [0, 9007199254740991]}, {}, {"one_of": ["b"], "optional": true}],
      "step_up": [{"above": {"parameter": 2, "value": 7}, "factors": ["otp"]}, {"first_use": true, "factors": ["seal"]},
        {"outside_hours": ["08:05", "24:00"], "factors": ["otp", "seal"]},
        {"token_older_than_seconds": 0, "factors": ["integrity"]}]
      """#)
    #expect(try DevicePolicy(json: policy.json()) == policy)
    #expect(policy.conditions.count == 1)
    #expect(!String(decoding: DevicePolicy.forSimulatedLock.json(), as: UTF8.self).contains("step_up"))
  }

  @Test(arguments: [
    #""parameters": {}"#, #""parameters": [1]"#, #""parameters": [{"one_of": []}]"#,
    #""parameters": [{"one_of": ["a", "a"]}]"#, #""parameters": [{"range": [2, 1]}]"#,
    #""parameters": [{"range": [1]}]"#, #""parameters": [{"range": [0, 1], "one_of": ["a"]}]"#,
    #""parameters": [{"optional": true}, {}]"#, #""parameters": [{}, {}, {}, {}, {}, {}, {}, {}, {}]"#,
    #""parameters": [{"most": 1}]"#, #""step_up": {}"#, #""step_up": [{"factors": ["otp"]}]"#,
    #""step_up": [{"first_use": true, "factors": []}]"#, #""step_up": [{"first_use": true}]"#,
    #""step_up": [{"first_use": false, "factors": ["otp"]}]"#,
    #""step_up": [{"first_use": true, "token_older_than_seconds": 1, "factors": ["otp"]}]"#,
    #""step_up": [{"above": {"parameter": 0, "value": 1}, "factors": ["otp"]}]"#,
    #""step_up": [{"above": {"parameter": 9, "value": 1}, "factors": ["otp"]}]"#,
    #""step_up": [{"above": {"value": 1}, "factors": ["otp"]}]"#,
    #""step_up": [{"outside_hours": ["08:00", "08:00"], "factors": ["otp"]}]"#,
    #""step_up": [{"outside_hours": ["8:00", "18:00"], "factors": ["otp"]}]"#,
    #""step_up": [{"outside_hours": ["08:60", "18:00"], "factors": ["otp"]}]"#,
    #""step_up": [{"outside_hours": ["08:00", "24:01"], "factors": ["otp"]}]"#,
    #""step_up": [{"outside_hours": ["08:00"], "factors": ["otp"]}]"#,
    #""step_up": [{"token_older_than_seconds": -1, "factors": ["otp"]}]"#,
    #""step_up": [{"first_use": true, "factors": ["face"]}]"#, #""step-up": []"#,
  ])
  func `a condition that is not understood denies everything`(members: String) {
    #expect(throws: PolicyFault.self) { _ = try policy(members) }
  }

  @Test func `a microcontroller does not get a policy whose conditions it would ignore`() throws {
    let policy = try policy(#""step_up": [{"first_use": true, "factors": ["otp"]}]"#)
    #expect(throws: FirmwareImageFault.unsupportedRules) { _ = try TestImage(policy: policy) }
    let small = FirmwarePolicy(policy)
    switch small {
    case .none: break
    case .some: Issue.record("the conditions are lost")
    }
  }
}
