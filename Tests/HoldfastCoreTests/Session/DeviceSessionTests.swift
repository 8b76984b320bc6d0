import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// The answers of a device, in the order of its checks.
@Suite struct DeviceSessionTests {
  let wrong = [UInt8](repeating: 0xee, count: 32)

  @Test func `a token is taken whole once, and then by its reference`() throws {
    let device = try ExampleDevice()
    let token = try ExampleToken().token()
    var prover = try Prover.with(token)
    #expect(try device.round(&prover).response.status == .accepted)
    var again = try Prover.with(token, remembered: true)
    let (response, step) = try device.round(&again)
    #expect(response.status == .accepted)
    guard case .done(let verdict) = step else {
      Issue.record("the prover wants more")
      return
    }
    #expect(verdict.isAuthenticated)
    #expect(device.lock.performed == ["unlock", "unlock"])
  }

  @Test func `a remembered token allows the commands that it allowed when it came whole, and no others`() throws {
    let device = try ExampleDevice()
    let token = try ExampleToken { $0.commands = ["status", "lock"] }.token()
    var prover = try Prover.with(token, command: "status")
    #expect(try device.round(&prover).response.status == .accepted)
    for (command, status) in [("lock", .accepted), ("unlock", .commandRefused)] as [(BoundedText<32>, Status)] {
      var again = try Prover.with(token, command: command, remembered: true)
      #expect(try device.round(&again).response.status == status)
    }
  }

  @Test func `a prover sends the token whole when its reference is not known`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token(), remembered: true)
    let first = try device.round(&prover)
    #expect(first.response.status == .tokenUnknown)
    guard case .awaitChallenge = first.step else {
      Issue.record("the prover gave up")
      return
    }
    #expect(try device.round(&prover).response.status == .accepted)
  }

  /// Messages that prove nothing do not make the next reference the first again.
  @Test(arguments: [false, true])
  func `references that are not known, one after the other, slow the connection`(withMalformedOnes: Bool) throws {
    let device = try ExampleDevice()
    let token = try ExampleToken().token()
    var delays: [UInt64] = []
    for _ in 0..<12 {
      var prover = try Prover.with(token, remembered: true)
      delays.append(try device.round(&prover).response.delayMilliseconds)
      guard withMalformedOnes else { continue }
      try device.session.makeChallenge()
      #expect(device.respond([0]).status == .malformed)
    }
    // The first is what an honest prover causes.
    #expect(delays == [UInt64](repeating: 0, count: 10) + [1000, 1000])
  }

  @Test func `provers whose tokens are not known and then come whole slow nothing`() throws {
    let device = try ExampleDevice()
    for number: UInt8 in 0..<15 {
      let token = ExampleToken { $0.tokenID = TokenID(filledWith: number) }
      var prover = try Prover.with(try token.token(), remembered: true)
      let unknown = try device.round(&prover).response
      let accepted = try device.round(&prover).response
      #expect(unknown.status == .tokenUnknown && accepted.status == .accepted)
      #expect(unknown.delayMilliseconds == 0 && accepted.delayMilliseconds == 0)
      #expect(unknown.credential == nil)
      #expect(accepted.credential == .token(verifyingKey: device.store.issuers.keys.first, token.tokenID))
    }
  }

  @Test func `a replayed answer is a device mismatch, and moves nothing`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token())
    let answer = try device.answer(from: &prover)
    #expect(device.respond(answer).status == .accepted)
    try device.session.makeChallenge()
    #expect(device.respond(answer).status == .deviceMismatch)
    #expect(device.lock.performed.count == 1)
  }

  @Test func `one challenge is good for one answer`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token())
    let answer = try device.answer(from: &prover)
    #expect(device.respond(answer).status == .accepted)
    #expect(device.respond(answer).status == .challengeExpired)
    #expect(device.lock.performed.count == 1)
  }

  @Test func `an answer that waited longer than thirty seconds is too late`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token())
    #expect(device.respond(try device.answer(from: &prover), waited: 30_001).status == .challengeExpired)
    var patient = try Prover.with(try ExampleToken().token())
    #expect(device.respond(try device.answer(from: &patient), waited: 30_000).status == .accepted)
  }

  @Test func `a garbled late answer is malformed before it is late`() throws {
    let device = try ExampleDevice()
    try device.session.makeChallenge()
    let response = device.respond([0x85], waited: 99_000)
    #expect(response.status == .malformed)
    #expect(response.closesConnection)
    #expect(device.outgoing == "83030df6")
  }

  @Test func `each fault of a token gives its status`() throws {
    let past = ExampleToken { ($0.issuedAt, $0.expires) = (1_700_000_000, 1_700_000_001) }
    #expect(try ExampleDevice().status(of: past) == .tokenExpired)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.expires = 1_790_000_100 }) == .tokenExpired)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.expires = 1_790_000_101 }) == .accepted)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.audience = DeviceID(filledWith: 1) }) == .tokenInvalid)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.issuer = try TestIssuer() }) == .tokenInvalid)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.flaws.isSigned = false }) == .tokenInvalid)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.commands = [] }) == .commandRefused)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.commands = ["lock"] }) == .commandRefused)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.commands = ["lock", "unlock"] }) == .accepted)
    #expect(try ExampleDevice().status(of: ExampleToken { $0.maximumUses = 0 }) == .usesExhausted)
    #expect(try ExampleDevice().status(of: ExampleToken(), command: "explode") == .commandRefused)
  }

  @Test func `wrong measurements are told apart, and only a proved device is told under seal`() throws {
    let device = try ExampleDevice()
    #expect(try device.status(of: ExampleToken(), device: wrong) == .deviceMismatch)
    #expect(device.outgoing == "830306f6")
    #expect(device.store.rounds.isEmpty)
    #expect(try device.status(of: ExampleToken(), integrity: wrong) == .integrityMismatch)
    #expect(device.outgoing.hasPrefix("83030553"))
    #expect(device.store.rounds.count == 1)
    #expect(device.lock.performed.isEmpty)
  }

  @Test func `a request that was changed on the way does not open`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token())
    let answer = try device.answer(from: &prover) { $0[$0.count - 20] ^= 1 }
    #expect(device.respond(answer).status == .malformed)
    #expect(device.lock.performed.isEmpty)
  }

  @Test func `an unsigned token counts only where policy says so, and moves no floor`() throws {
    let device = try ExampleDevice()
    device.policy.acceptsUnsigned = true
    let token = ExampleToken { ($0.issuedAt, $0.generation, $0.flaws.isSigned) = (1_790_000_050, 9, false) }
    #expect(try device.status(of: token) == .accepted)
    #expect(device.store.floor == 1_790_000_000)
    #expect(device.store.generations.isEmpty)
    device.policy.acceptsUnsigned = false
    var prover = try Prover.with(try token.token(), remembered: true)
    #expect(try device.round(&prover).response.status == .tokenUnknown)
  }

  @Test func `a token of the app development counts only where policy says so, also if it is remembered`() throws {
    let device = try ExampleDevice()
    let token = try ExampleToken { $0.subject = "development" }.token()
    var prover = try Prover.with(token)
    #expect(try device.round(&prover).response.status == .tokenInvalid)
    device.policy.acceptsDevelopment = true
    prover = try Prover.with(token)
    #expect(try device.round(&prover).response.status == .accepted)
    device.policy.acceptsDevelopment = false
    prover = try Prover.with(token, remembered: true)
    #expect(try device.round(&prover).response.status == .tokenInvalid)
    for subject in ["developmen", "developments", "Development"] {
      #expect(try device.status(of: ExampleToken { $0.subject = subject }) == .accepted, "\(subject)")
    }
  }

  @Test func `a removed issuer's remembered token is invalid at once`() throws {
    let device = try ExampleDevice()
    let token = try ExampleToken().token()
    var prover = try Prover.with(token)
    #expect(try device.round(&prover).response.status == .accepted)
    device.store.issuers.removeAll()
    var again = try Prover.with(token, remembered: true)
    #expect(try device.round(&again).response.status == .tokenInvalid)
  }

  @Test func `an older generation is revoked once a newer one was accepted`() throws {
    let device = try ExampleDevice()
    #expect(try device.status(of: ExampleToken { $0.generation = 2 }) == .accepted)
    #expect(try device.status(of: ExampleToken { $0.generation = 1 }) == .tokenRevoked)
    #expect(try device.status(of: ExampleToken { $0.generation = 2 }) == .accepted)
  }

  @Test func `uses are counted by token id, whatever the token's bytes are`() throws {
    let device = try ExampleDevice()
    #expect(try device.status(of: ExampleToken { $0.maximumUses = 2 }, integrity: wrong) == .integrityMismatch)
    #expect(try device.status(of: ExampleToken { $0.maximumUses = 2 }) == .accepted)
    #expect(try device.status(of: ExampleToken { $0.maximumUses = 2 }) == .accepted)
    #expect(try device.status(of: ExampleToken { $0.maximumUses = 2 }) == .usesExhausted)
  }

  @Test func `nobody can push the clock into the far future`() throws {
    let device = try ExampleDevice()
    let far = 1_790_000_000 + 400 * 86_400 + 1 as UInt64
    #expect(try device.status(of: ExampleToken { ($0.issuedAt, $0.expires) = (far, far + 10) }) == .tokenInvalid)
    let tomorrow = 1_790_000_100 + 86_401 as UInt64
    #expect(
      try device.status(of: ExampleToken { ($0.issuedAt, $0.expires) = (tomorrow, tomorrow + 10) }) == .tokenInvalid)
    #expect(device.store.floor == 1_790_000_000)
    device.clock.seconds = nil
    #expect(try device.status(of: ExampleToken { ($0.issuedAt, $0.expires) = (far - 1, far + 10) }) == .accepted)
    #expect(device.store.floor == far - 1)
  }

  @Test func `an integrity proof may be missing where the command needs none`() throws {
    let device = try ExampleDevice()
    var prover = try Prover.with(try ExampleToken().token(), command: "status", integrity: wrong)
    let first = try device.round(&prover)
    #expect(first.response.status == .integrityMismatch)
    guard case .awaitChallenge = first.step else {
      Issue.record("the prover gave up")
      return
    }
    #expect(try device.round(&prover).response.status == .accepted)
    var unlock = try Prover.with(try ExampleToken().token(), integrity: wrong)
    _ = try device.round(&unlock)
    let second = try device.round(&unlock)
    #expect(second.response.status == .factorMissing)
    guard case .done(let verdict) = second.step else {
      Issue.record("the prover wants more")
      return
    }
    #expect(verdict.status == .integrityMismatch)
  }

  @Test func `a store that fails means no`() throws {
    let device = try ExampleDevice()
    device.store.failsToSettle = true
    #expect(try device.status(of: ExampleToken()) == .internal)
    #expect(device.lock.performed.isEmpty)
    device.store.failsToRead = true
    #expect(throws: DeviceFault.store) { try device.session.makeChallenge() }
    #expect(device.respond([0x80]).status == .malformed)
  }

  @Test func `an issuer that is removed while a round is under way is not believed, without a seal`() throws {
    let device = try ExampleDevice()
    device.store.losesTrust = true
    var prover = try Prover.with(try ExampleToken().token())
    let (response, step) = try device.round(&prover)
    #expect(response.status == .tokenInvalid)
    #expect(device.lock.performed.isEmpty)
    guard case .done(let verdict) = step else {
      Issue.record("the prover wants more")
      return
    }
    #expect(!verdict.isAuthenticated)
  }

  @Test func `an actuator that fails is an internal fault under seal`() throws {
    let device = try ExampleDevice()
    device.lock.fails = true
    #expect(try device.status(of: ExampleToken()) == .internal)
    #expect(device.outgoing.hasPrefix("83031153"))
  }

  @Test func `from the tenth failed proof in a minute answers wait a second`() throws {
    let device = try ExampleDevice()
    var token = ExampleToken()
    token.flaws.isSigned = false
    for _ in 1..<10 {
      var prover = try Prover.with(try token.token())
      #expect(try device.round(&prover).response.delayMilliseconds == 0)
    }
    var tenth = try Prover.with(try token.token())
    #expect(try device.round(&tenth).response.delayMilliseconds == 1000)
    var good = try Prover.with(try ExampleToken().token())
    let slowed = try device.round(&good).response
    #expect(slowed.status == .accepted)
    #expect(slowed.delayMilliseconds == 1000)
    device.clock.advance(milliseconds: 60_000)
    var later = try Prover.with(try ExampleToken().token())
    #expect(try device.round(&later).response.delayMilliseconds == 0)
  }

  @Test func `a repeating random source at boot repeats no challenge`() throws {
    var seen: Set<String> = []
    for boot in 1...3 as ClosedRange<UInt64> {
      for connection in 1...3 as ClosedRange<UInt64> {
        let device = try ExampleDevice(bootCount: boot, connection: connection)
        for _ in 0..<4 {
          try device.session.makeChallenge()
          seen.insert(hex(device.session.challenge.array))
        }
      }
    }
    #expect(seen.count == 36)
  }
}
