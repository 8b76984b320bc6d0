import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// The facts that a device remembers, counts, hands to its store and tells the prover.
@Suite struct DeviceSessionKeepingTests {
  let wrong = [UInt8](repeating: 0xee, count: 32)

  private func verdict(_ device: ExampleDevice, _ prover: inout Prover) throws -> ProverOutcome? {
    guard case .done(let verdict) = try device.round(&prover).step else { return nil }
    return verdict
  }

  @Test func `a token is remembered only once its holder has proved the device, and once`() throws {
    let device = try ExampleDevice()
    let token = try ExampleToken().token()
    var stranger = try Prover.with(token, device: wrong)
    _ = try device.round(&stranger)
    #expect(device.store.remembered.isEmpty)
    var outdated = try Prover.with(token, integrity: wrong)
    _ = try device.round(&outdated)
    #expect(device.store.remembered.count == 1)
    var again = try Prover.with(token, remembered: true)
    #expect(try device.round(&again).response.status == .accepted)
    #expect(device.store.remembered.count == 1)
  }

  @Test func `a session round without a device proof is a device mismatch`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token())
    let answer = try device.answer(from: &prover) { message in
      // 85 02 59 length(2) head, then 58 20 before each proof.
      let start = 5 + Int(message[3]) << 8 + Int(message[4]) + 34
      message.replaceSubrange(start..<start + 34, with: [0xf6])
    }
    #expect(device.respond(answer).status == .deviceMismatch)
    #expect(device.store.rounds.isEmpty)
  }

  @Test func `a remembered unsigned token is invalid once policy no longer takes one`() throws {
    let device = try ExampleDevice()
    device.policy.acceptsUnsigned = true
    let token = try ExampleToken { $0.flaws.isSigned = false }.token()
    var prover = try Prover.with(token)
    #expect(try device.round(&prover).response.status == .accepted)
    device.policy.acceptsUnsigned = false
    var again = try Prover.with(token, remembered: true)
    #expect(try device.round(&again).response.status == .tokenInvalid)
  }

  @Test func `a device without a clock takes no token from beyond its policy's reach`() throws {
    let device = try ExampleDevice()
    device.clock.seconds = nil
    let far = 1_790_000_000 + 400 * 86_400 + 1 as UInt64
    #expect(try device.status(of: ExampleToken { ($0.issuedAt, $0.expires) = (far, far + 10) }) == .tokenInvalid)
    #expect(device.store.floor == 1_790_000_000)
    device.policy.maximumIssueAdvanceSeconds = .max
    #expect(try device.status(of: ExampleToken { ($0.issuedAt, $0.expires) = (far, far + 10) }) == .accepted)
  }

  @Test func `a clock floor that cannot be read is an internal fault`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token())
    let answer = try device.answer(from: &prover)
    device.store.failsToRead = true
    #expect(device.respond(answer).status == .internal)
    #expect(device.lock.performed.isEmpty)
  }

  @Test func `the store is given what the token and the request say, whole or by reference`() throws {
    let device = try ExampleDevice()
    let maker = ExampleToken {
      ($0.generation, $0.maximumUses, $0.version) = (7, 5, (1, 2, 3))
      ($0.commands, $0.user) = (["unlock"], "ann")
    }
    let token = try maker.token()
    for remembered in [false, true] {
      var prover = try Prover.with(token, remembered: remembered)
      #expect(try device.round(&prover).response.status == .accepted)
      let round = try #require(device.store.rounds.last)
      #expect(round.verifyingKey == device.store.issuers.keys.first)
      #expect(round.tokenID == maker.tokenID)
      #expect(round.subject == "app.test")
      #expect(round.issuedAt == maker.issuedAt)
      #expect(round.expires == maker.expires)
      #expect(round.generation == 7)
      #expect(round.maximumUses == 5)
      #expect(round.version == AppVersion(major: 1, minor: 2, patch: 3))
      #expect(round.command == "unlock")
      #expect(round.realClock == 1_790_000_100)
    }
    var other = try Prover.with(token, command: "lock", remembered: true)
    #expect(try device.round(&other).response.status == .commandRefused)
  }

  @Test func `a command's own limits count, and policy's for a command that it does not know`() throws {
    let device = try ExampleDevice()
    device.policy.rules["unlock"]?.limits.minimumVersion = AppVersion(major: 2, minor: 0, patch: 0)
    device.policy.limits.generationFloor = 5
    #expect(try device.status(of: ExampleToken { $0.version = (1, 9, 9) }) == .versionTooOld)
    #expect(try device.status(of: ExampleToken { $0.version = (2, 0, 0) }) == .accepted)
    #expect(try device.status(of: ExampleToken(), command: "lock") == .accepted)
    #expect(try device.status(of: ExampleToken(), command: "explode") == .tokenRevoked)
  }

  @Test func `the prover is told why under seal`() throws {
    let device = try ExampleDevice()
    var late = try Prover.with(try ExampleToken { $0.expires = 1_790_000_100 }.token())
    #expect(try verdict(device, &late)?.notice.clock == 1_790_000_100)
    device.policy.rules["unlock"]?.limits.generationFloor = 5
    var revoked = try Prover.with(try ExampleToken().token())
    #expect(try verdict(device, &revoked)?.notice.generationFloor == 5)
    device.policy.rules["lock"]?.factors = [.device, .otp]
    var codeless = try Prover.with(try ExampleToken().token(), command: "lock")
    #expect(try verdict(device, &codeless)?.notice.missingFactors == .otp)
  }

  @Test func `what a failed actuator said reaches nobody`() throws {
    let device = try ExampleDevice()
    device.lock.fails = true
    var prover = try Prover.with(try ExampleToken().token())
    #expect(try device.round(&prover).response.status == .internal)
    #expect(prover.reply.result.count == 0)
  }

  @Test func `M1 says what every command needs, and the later of floor and clock`() throws {
    let device = try ExampleDevice()
    device.policy.commonFactors = [.integrity, .device]
    for (floor, unix, expected) in [(5000, 7000, 7000), (9000, 7000, 9000), (9000, nil, 9000)]
      as [(UInt64, UInt64?, UInt64)]
    {
      (device.store.floor, device.clock.seconds) = (floor, unix)
      try device.session.makeChallenge()
      let challenge = try Challenge(device.session.challenge.bytes)
      #expect(challenge.clock == expected)
      #expect(challenge.required == [.integrity, .device])
    }
  }

  @Test func `a challenge that could not be made or was given up is good for no answer`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token())
    let answer = try device.answer(from: &prover)
    device.store.failsToRead = true
    #expect(throws: DeviceFault.store) { try device.session.makeChallenge() }
    device.store.failsToRead = false
    #expect(device.respond(answer).status == .challengeExpired)
    var silent = try Prover.with(try ExampleToken().token())
    let late = try device.answer(from: &silent)
    device.session.refuse(.challengeExpired)
    #expect(device.respond(late).status == .challengeExpired)
    #expect(device.lock.performed.isEmpty)
  }

  @Test func `answers to peers that proved nothing are counted, and no others`() throws {
    let device = try ExampleDevice()
    #expect(try device.status(of: ExampleToken(), device: wrong) == .deviceMismatch)
    #expect(try device.status(of: ExampleToken(), integrity: wrong) == .integrityMismatch)
    #expect(try device.status(of: ExampleToken()) == .accepted)
    device.session.refuse(.busy)
    #expect(device.store.unproved == [.deviceMismatch, .busy])
  }

  @Test(arguments: [Status.tokenInvalid, .deviceMismatch, .integrityMismatch, .tokenExpired, .accepted])
  func `the three failed proofs slow, and no other answer does`(status: Status) throws {
    let device = try ExampleDevice()
    let token = ExampleToken {
      if status == .tokenExpired { $0.expires = 1_790_000_001 }
      $0.flaws.isSigned = status != .tokenInvalid
    }
    for count in 1...10 {
      var prover = try Prover.with(
        try token.token(), integrity: status == .integrityMismatch ? wrong : nil,
        device: status == .deviceMismatch ? wrong : nil)
      let response = try device.round(&prover).response
      #expect(response.status == status)
      let isSlowed = count == 10 && ![.tokenExpired, .accepted].contains(status)
      #expect(response.delayMilliseconds == (isSlowed ? 1000 : 0))
    }
  }
}
