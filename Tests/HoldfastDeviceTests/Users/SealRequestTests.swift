import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// `seal-request`: the data with which a user is asked for the seal over a command.
@Suite struct SealRequestTests {
  private let device: TestDevice

  init() throws {
    device = try TestDevice()
    device.policy.commands[UserCommandName.sealRequest] = CommandRule(factors: [.device])
    device.policy.commands[BoundedText("lock")]?.factors = [.device, .seal]
    var visitor = TestVisitor()
    #expect(try visitor.use(device.ledger.issue(seal: challengeSealMethod), at: device.connect()))
  }

  private func ask(
    _ parameters: String..., as prover: TestProver? = nil, random: UInt8 = 1
  ) throws -> TestVerdict {
    try device.connect(random: random).round(prover ?? device.prover(), "seal-request", parameters: parameters)
  }

  private func contents(_ verdict: TestVerdict) throws -> SealRequestContents {
    try UncheckedSealRequest(Array(try #require(verdict.result).utf8)).contents
  }

  private func hostSecret() throws -> [UInt8] {
    try device.ledger.read { (tables) throws(DatabaseError) in
      guard let user = try tables.user(named: ann), let secret = try tables.secret(.host, of: user.id) else {
        throw .misuse
      }
      return Array(secret.bytes)
    }
  }

  @Test func `the request names device, user, command, parameters and a fresh challenge, under a code of the user's`()
    throws
  {
    device.policy.texts[BoundedText("lock")] = RequestTemplate("Lock door {1}, then {2}{3}{7}{0}{9}{}")
    let verdict = try ask("ann", "lock", "7&u=bob", "é{1}")
    #expect(verdict.status == .accepted)
    let asked = try contents(verdict)
    let challenge = try #require(try device.record()?.challenge)
    #expect(
      asked
        == SealRequestContents(
          device: device.folder.descriptor.deviceID, user: "ann", command: "lock", parameters: ["7&u=bob", "é{1}"],
          challenge: challenge.bytes, expires: testTime + 300, text: "Lock door 7&u=bob, then é{1}{7}{0}{9}{}"))
    let request = try UncheckedSealRequest(Array(try #require(verdict.result).utf8))
    let (secret, other) = (try hostSecret(), [UInt8](repeating: 1, count: 32))
    #expect(try request.isAuthentic(under: secret.span))
    #expect(try !request.isAuthentic(under: other.span))
    let parameters = ["ann", "lock", "7&u=bob", "é{1}"]
    let audited = try device.lastEvents(4).compactMap { event -> AuditedParameter? in
      if case .parameter(let parameter) = event { parameter } else { nil }
    }
    #expect(audited.count == parameters.count)
  }

  @Test func `its challenge is good for the seal that is asked for`() throws {
    let asked = try contents(ask("ann", "lock", "7"))
    let prover = try device.prover()
    let made = try seal(
      challengeSealMethod, challenge: Array(asked.challenge.bytes), "lock", ["7"], secret: sealSecret())
    #expect(try device.connect().round(prover, "lock", parameters: ["8"], seal: made).status == .sealRejected)
    device.clock.seconds = testTime + 61
    let again = try contents(ask("ann", "lock", "7", random: 3))
    let second = try seal(
      challengeSealMethod, challenge: Array(again.challenge.bytes), "lock", ["7"], secret: sealSecret())
    #expect(try device.connect().round(prover, "lock", parameters: ["7"], seal: second).status == .accepted)
  }

  @Test func `only a request for a seal replaces the challenge of one, whatever the parameters of other commands`()
    throws
  {
    let asked = try contents(ask("ann", "lock", "7", "8"))
    let made = try seal(
      challengeSealMethod, challenge: Array(asked.challenge.bytes), "lock", ["7", "8"], secret: sealSecret())
    let sealed = try device.connect().round(device.prover(), "lock", parameters: ["7", "8"], seal: made)
    #expect((sealed.status, sealed.result) == (.accepted, "locked"))
    #expect(try device.record()?.challenge == nil)
  }

  private func sealSecret() throws -> [UInt8] {
    try device.ledger.read { (tables) throws(DatabaseError) in
      guard let user = try tables.user(named: ann), let secret = try tables.secret(.seal, of: user.id) else {
        throw .misuse
      }
      return Array(secret.bytes)
    }
  }

  @Test func `a command that the policy or the token refuses, or that needs no seal, is not asked for`() throws {
    device.policy.conditions[BoundedText("lock")] = {
      var conditions = CommandConditions()
      conditions.parameters = ParameterRules(
        places: [.oneOf([BoundedText("7"), BoundedText("12345678901234567")])], requiredCount: 1)
      return conditions
    }()
    for refused in [
      ["ann", "unlock"], ["ann", "pump"], ["ann", "lock", "8"], ["ann", "lock"], ["ann", ""], ["ann"], [],
      ["ann", "lock", "12345678901234567"], [String(repeating: "x", count: 33), "lock", "7"],
    ] {
      let verdict = try device.connect().round(device.prover(), "seal-request", parameters: refused)
      #expect((verdict.status, verdict.result) == (.commandRefused, "notInPolicy"), "\(refused)")
    }
    let narrow = try device.prover { $0.commands = ["seal-request"] }
    #expect(try ask("ann", "lock", "7", as: narrow).result == "notInPolicy")
    #expect(try device.record()?.challenge == nil)
    #expect(try ask("ann", "lock", "7").status == .accepted)
    device.policy.commands[UserCommandName.sealRequest] = nil
    #expect(try ask("ann", "lock", "7").result == "notInPolicy")
  }

  @Test func `conditions of seal-request itself hold, too`() throws {
    device.policy.conditions[UserCommandName.sealRequest] = {
      var conditions = CommandConditions()
      conditions.parameters = ParameterRules(
        places: [.oneOf(["ann"]), .oneOf(["lock"]), .oneOf(["7"])], requiredCount: 3)
      return conditions
    }()
    #expect(try ask("ann", "lock", "8").result == "notInPolicy")
    #expect(try device.record()?.challenge == nil)
    #expect(try ask("ann", "lock", "7").status == .accepted)
  }

  @Test func `a step-up to a seal is asked for where it applies`() throws {
    device.policy.commands[BoundedText("lock")]?.factors = [.device]
    device.policy.conditions[BoundedText("lock")] = {
      var conditions = CommandConditions()
      conditions.stepUps = [StepUp(.above(place: 1, 100), factors: .seal)]
      return conditions
    }()
    #expect(try ask("ann", "lock", "100").status == .commandRefused)
    #expect(try ask("ann", "lock", "101").status == .accepted)
  }

  @Test func `another user than the token's is not asked, and an unknown one gives nothing`() throws {
    let mallory = try device.prover { $0.user = "mallory" }
    #expect(try ask("ann", "lock", as: mallory).result == "anotherUser")
    #expect(try device.record()?.challenge == nil)
    let unknown = try ask("bob", "lock")
    #expect((unknown.status, unknown.result) == (.accepted, ""))
    try device.add(bob)
    // The owner gave this user no secret for host codes.
    #expect(try ask("bob", "lock").result == "")
  }

  @Test func `a pending request is not replaced within a minute`() throws {
    let first = try contents(ask("ann", "lock", "7"))
    #expect(try ask("ann", "lock", "8", random: 2).result == "challengePending")
    device.clock.seconds = testTime + 60
    let second = try contents(ask("ann", "lock", "8", random: 2))
    #expect(first.challenge != second.challenge)
  }

  @Test func `a device without a clock gives no expiry, and a request that is too long is a clear failure`() throws {
    device.policy.codeLimits.sealParameterLength = 64
    let long = String(repeating: "ä", count: 32)
    let verdict = try ask("ann", "lock", long, long, long)
    #expect((verdict.status, verdict.result) == (.internal, "the request for the seal would be too long"))
    device.clock.seconds = testTime + 60
    #expect(try ask("ann", "lock", String(repeating: "x", count: 64), random: 2).status == .accepted)
    device.policy.texts[BoundedText("lock")] = RequestTemplate(String(repeating: "{1}", count: 42))
    device.clock.seconds = testTime + 120
    #expect(try ask("ann", "lock", "12345678", random: 3).status == .internal)
  }

  @Test func `a template is short, visible text, and stands in the policy file`() throws {
    for bad in ["", "Open\u{1b}[2J", "a\u{202e}b", "a\nb", String(repeating: "x", count: 129)] {
      #expect(RequestTemplate(bad) == nil)
    }
    var policy = DevicePolicy.forSimulatedLock
    policy.texts[BoundedText("open-safe")] = RequestTemplate("Open safe {1} \"now\" für {2}")
    #expect(policy.texts.count == 1)
    #expect(try DevicePolicy(json: policy.json()) == policy)
    for text in ["1", "\"\"", "\"a\\u0007\"", "null"] {
      let json = "{\"version\":1,\"commands\":{\"unlock\":{\"factors\":[],\"text\":\(text)}}}"
      #expect(throws: PolicyFault.self) { _ = try DevicePolicy(json: Array(json.utf8)) }
    }
  }
}
