import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// Whole activations between a user and a device.
@Suite struct ActivationTests {
  /// A device with a code for ann, its grant, and ann, who has not confirmed it yet.
  private func granted(_ device: ExampleDevice, _ user: inout TestUser) throws -> [UInt8] {
    let (response, grant) = device.reply(to: try user.answer(try device.opening()))
    #expect(response.status == .accepted && response.awaitsConfirmation && !response.closesConnection)
    #expect(device.store.activated.isEmpty)
    return grant
  }

  @Test func `a right code gives both ends the same secrets`() throws {
    let device = try ExampleDevice()
    try device.issue()
    var user = TestUser.with(activationText)
    let (message, secrets) = try user.confirmation(of: try granted(device, &user))
    let given = user.grant
    let grant = try #require(given)
    #expect(grant.user == "ann" && grant.methods == ByPurpose(otp: totpMethod, seal: timeSealMethod))
    #expect(grant.time == device.clock.seconds && grant.sealParameterLength == 16)
    let deviceID = user.deviceID
    #expect(deviceID == fixed(hex("74348e8af6e1c57c37f453b0c7b78462")))
    let (response, answer) = device.reply(to: message)
    #expect(response.status == .accepted && response.isPeerAuthenticated && !response.awaitsConfirmation)
    guard case .done = try user.receive(answer.span) else {
      Issue.record("not done")
      return
    }
    #expect(device.store.activated == ["ann": secrets])
    #expect(Set(secrets.values).count == 3 && secrets.values.allSatisfy { $0.count == 32 })
    #expect(device.store.codes.isEmpty && device.store.unproved.isEmpty)
  }

  @Test func `the code is the credential of the grant and of the confirmation`() throws {
    let device = try ExampleDevice()
    try device.issue(id: 5)
    var user = TestUser.with(activationText)
    let (granted, grant) = device.reply(to: try user.answer(try device.opening()))
    #expect(granted.status == .accepted && granted.credential == .code(5))
    let confirmed = device.reply(to: try user.confirmation(of: grant).message).response
    #expect(confirmed.status == .accepted && confirmed.credential == .code(5))
  }

  @Test func `where the policy knows no protection of secrets, a grant demands none`() throws {
    let device = try ExampleDevice()
    try device.issue()
    device.store.demands = [1: ProtectionDemand(pinLength: 6, needsKey: true)!]
    var user = TestUser.with(activationText)
    _ = try user.confirmation(of: try granted(device, &user))
    let demand = user.demand
    #expect(demand == nil)
  }

  @Test func `two activations by one code have different secrets`() throws {
    var seen: Set<[UInt8]> = []
    for seed: UInt64 in 1...2 {
      let device = try ExampleDevice()
      try device.issue()
      var user = TestUser.with(activationText, seed: seed)
      seen.insert(try user.confirmation(of: try granted(device, &user)).secrets[.otp]!)
    }
    #expect(seen.count == 2)
  }

  @Test func `a code that is wrong, out of time, used up, for unlocking, or another device's is refused`() throws {
    let setUps: [(String, (ExampleDevice) throws -> Void)] = [
      ("none", { _ in }), ("another", { try $0.issue(.activation, otherText) }),
      ("out of time", { try $0.issue(lifetime: 0) }), ("for unlocking", { try $0.issue(.unlock) }),
    ]
    for (name, setUp) in setUps {
      let device = try ExampleDevice()
      try setUp(device)
      var user = TestUser.with(activationText)
      let (response, message) = device.reply(to: try user.answer(try device.opening()))
      #expect(
        response.status == .otpRejected && !response.isPeerAuthenticated && !response.awaitsConfirmation, "\(name)")
      let fault = user.fault(for: message)
      #expect(fault == .refused(.otpRejected))
      #expect(device.store.activated.isEmpty && device.store.unproved == [.otpRejected])
    }
  }

  @Test func `the key of an unlock code with the purpose of an activation is refused, and the other way round`() throws
  {
    let device = try ExampleDevice()
    try device.issue(.unlock)
    device.store.codes[1]?.purpose = .activation
    var user = TestUser.with(activationText)
    #expect(device.reply(to: try user.answer(try device.opening())).response.status == .otpRejected)
    try device.issue(.activation)
    device.store.codes[1]?.purpose = .unlock
    var again = TestUser.with(activationText)
    #expect(device.reply(to: try again.answer(try device.opening())).response.status == .otpRejected)
  }

  @Test func `a code is found among others, and used once`() throws {
    let device = try ExampleDevice()
    try device.issue(.activation, otherText, id: 1)
    try device.issue(.activation, activationText, id: 2)
    try device.issue(.unlock, activationText, id: 3)
    var user = TestUser.with(activationText)
    let confirmation = try user.confirmation(of: try granted(device, &user)).message
    #expect(device.reply(to: confirmation).response.status == .accepted)
    #expect(Set(device.store.codes.keys) == [1, 3])
    var again = TestUser.with(activationText)
    #expect(device.reply(to: try again.answer(try device.opening())).response.status == .otpRejected)
  }

  @Test func `of two users who were granted one code the first to confirm has it`() throws {
    let device = try ExampleDevice()
    try device.issue()
    let second = try ExampleDevice(connection: 2)
    try second.issue()
    var ann = TestUser.with(activationText)
    var eve = TestUser.with(activationText, seed: 2)
    let annsConfirmation = try ann.confirmation(of: try granted(device, &ann)).message
    let evesConfirmation = try eve.confirmation(of: try granted(second, &eve)).message
    #expect(device.reply(to: annsConfirmation).response.status == .accepted)
    second.store.codes = device.store.codes
    let (response, message) = second.reply(to: evesConfirmation)
    #expect(response.status == .otpRejected && !response.isPeerAuthenticated)
    #expect(eve.fault(for: message) == .refused(.otpRejected))
    #expect(second.store.activated.isEmpty)
  }

  @Test func `a code that ends between grant and confirmation is the store's to judge`() throws {
    let device = try ExampleDevice()
    try device.issue()
    var user = TestUser.with(activationText)
    let confirmation = try user.confirmation(of: try granted(device, &user)).message
    device.store.codes = [:]
    #expect(device.reply(to: confirmation).response.status == .otpRejected)
  }

  @Test(
    arguments: [
      (.activation, false, 3, 0, 99, true), (.activation, false, 3, 0, 100, false),
      (.activation, false, 3, 99, 50, true),
      (.activation, false, 3, 100, nil, false), (.activation, false, 4, 0, 99, false),
      (.activation, true, 4, 0, 99, true),
      (.unlock, true, 4, 0, 99, true), (.unlock, true, 4, 0, 100, false), (.unlock, true, 4, 100, nil, false),
      (.unlock, false, 3, 0, 99, false),
    ] as [(OneUseCode.Purpose, Bool, Int, UInt64, UInt64?, Bool)])
  func `a code is good for its purpose, before the second in which it expires, if there is room for its user`(
    purpose: OneUseCode.Purpose, isKnown: Bool, userCount: Int, floor: UInt64, clock: UInt64?, isGood: Bool
  ) {
    let facts = CodeFacts(
      code: OneUseCodeRecord(
        id: 1, purpose: purpose, key: Secret(), user: "ann", expires: 100, methods: ByPurpose(otp: hotpMethod)),
      user: isKnown ? UserRecord(id: 7, lastAccepted: 1) : nil, userCount: userCount, userCapacity: 4, clockFloor: floor
    )
    let (activated, unlocked) = (facts.activatedUser(realClock: clock), facts.unlockedUser(realClock: clock))
    #expect((activated != nil) == (purpose == .activation && isGood))
    #expect((unlocked != nil) == (purpose == .unlock && isGood))
    #expect(activated?.lastAccepted == (isGood && purpose == .activation ? max(floor, clock ?? 0) : nil))
  }

  @Test(arguments: [OneUseCode.Purpose.activation, .unlock])
  func `where no time is known, a code is judged as of the first second`(purpose: OneUseCode.Purpose) {
    let facts = CodeFacts(
      code: OneUseCodeRecord(
        id: 1, purpose: purpose, key: Secret(), user: "ann", expires: 1, methods: ByPurpose(otp: hotpMethod)),
      user: UserRecord(id: 7, lastAccepted: 0), userCount: 1, userCapacity: 4, clockFloor: 0)
    let user = purpose == .unlock ? facts.unlockedUser(realClock: nil) : facts.activatedUser(realClock: nil)
    #expect(user != nil)
  }

  @Test func `a confirmation before an opening, twice, late, or in another round is refused`() throws {
    let device = try ExampleDevice()
    try device.issue()
    var user = TestUser.with(activationText)
    let confirmation = try user.confirmation(of: try granted(device, &user)).message
    let other = try ExampleDevice()
    try other.issue()
    _ = try other.opening()
    #expect(other.reply(to: confirmation).response.status == .challengeExpired)
    #expect(device.reply(to: confirmation, waited: 30_001).response.status == .challengeExpired)
    #expect(device.reply(to: confirmation).response.status == .challengeExpired)
    _ = try device.opening()
    #expect(device.reply(to: confirmation).response.status == .challengeExpired)
    #expect(device.store.activated.isEmpty && device.store.codes.count == 1)
    var again = TestUser.with(activationText)
    let second = try again.confirmation(of: try granted(device, &again)).message
    #expect(device.reply(to: second).response.status == .accepted)
    #expect(device.reply(to: second).response.status == .challengeExpired)
    #expect(device.store.activated.count == 1)
  }

  @Test func `an opening counts for its own challenge alone, and in time`() throws {
    let device = try ExampleDevice()
    try device.issue()
    var user = TestUser.with(activationText)
    let opening = try user.answer(try device.opening())
    #expect(device.reply(to: opening, waited: 30_001).response.status == .challengeExpired)
    #expect(device.reply(to: opening).response.status == .challengeExpired)
    _ = try device.opening()
    #expect(device.reply(to: opening).response.status == .otpRejected)
    #expect(!device.reply(to: opening).response.awaitsConfirmation)
  }

  @Test func `a second opening, a round or rubbish between grant and confirmation ends the activation`() throws {
    for between in 0..<4 {
      let device = try ExampleDevice()
      try device.issue()
      var user = TestUser.with(activationText)
      let challenge = try device.opening()
      let opening = try user.answer(challenge)
      let grant = device.reply(to: opening).message
      let confirmation = try user.confirmation(of: grant).message
      var prover = try Prover.with(try ExampleToken().token())
      guard case .send = try prover.receive(challenge.span) else { return }
      let round = prover.outgoing.array
      let status = device.reply(to: [opening, round, [0x80], []][between]).response.status
      #expect(status == [.challengeExpired, .challengeExpired, .malformed, .malformed][between])
      #expect(device.reply(to: confirmation).response.status == .challengeExpired)
      #expect(device.store.activated.isEmpty && device.lock.performed.isEmpty)
    }
  }

  @Test func `silence between grant and confirmation ends the activation`() throws {
    let device = try ExampleDevice()
    try device.issue()
    var user = TestUser.with(activationText)
    let confirmation = try user.confirmation(of: try granted(device, &user)).message
    device.session.refuse(.challengeExpired)
    #expect(device.reply(to: confirmation).response.status == .challengeExpired)
    #expect(device.store.activated.isEmpty)
  }

  @Test func `a changed byte anywhere in an opening is refused, and a point off the curve`() throws {
    let device = try ExampleDevice()
    try device.issue()
    for place in [4, 5, 40, 68, 71, 90, 102] {
      var user = TestUser.with(activationText, seed: UInt64(place))
      var opening = try user.answer(try device.opening())
      #expect(opening.count == 103)
      opening[place] ^= 1
      let status = device.reply(to: opening).response.status
      #expect(status == .otpRejected || status == .malformed, "byte \(place)")
      let isGranted = device.session.activation != nil
      #expect(!isGranted)
    }
    // A user that knows the code and gives no point.
    var cryptography = OpenSSLCryptography()
    let codeKey = try oneUseCode(activationText).key(for: .activation, using: &cryptography)
    for bytes in [[0x04] + [UInt8](repeating: 1, count: 64), [UInt8](repeating: 0, count: 65)] {
      let challenge = try device.opening()
      let point: P256Point = fixed(bytes)
      let digest = try ActivationKeys.opening(
        challenge: challenge.span, clientPoint: point, using: &cryptography)
      let mac = try authenticationCode(key: codeKey, digest, using: &cryptography)
      var message: [UInt8] = []
      ActivationMessage.activate(point, mac: mac).encode(into: &message)
      #expect(device.reply(to: message).response.status == .otpRejected)
      let isGranted = device.session.activation != nil
      #expect(!isGranted)
    }
  }

  @Test func `a changed byte of the grant is noticed by the user`() throws {
    for place in [4, 5, 40, 68, 71, -1] {
      let device = try ExampleDevice()
      try device.issue()
      var user = TestUser.with(activationText)
      var grant = try granted(device, &user)
      let index = place < 0 ? grant.count - 1 : place
      grant[index] ^= 1
      #expect(user.fault(for: grant) == .impostor, "byte \(index)")
      let secrets: Bool? = user.withSecrets { _ in true }
      let hasGrant = user.grant != nil
      #expect(!hasGrant && secrets == nil)
    }
  }

  @Test func `a changed confirmation is refused, and the code stays for one who has it right`() throws {
    let device = try ExampleDevice()
    try device.issue()
    var user = TestUser.with(activationText)
    var confirmation = try user.confirmation(of: try granted(device, &user)).message
    confirmation[confirmation.count - 1] ^= 1
    #expect(device.reply(to: confirmation).response.status == .otpRejected)
    confirmation[confirmation.count - 1] ^= 1
    #expect(device.reply(to: confirmation).response.status == .challengeExpired)
    #expect(device.store.activated.isEmpty && device.store.codes.count == 1)
  }

  @Test func `a device's last word is checked by the user`() throws {
    let device = try ExampleDevice()
    try device.issue()
    for change in 0..<3 {
      try device.issue()
      var user = TestUser.with(activationText)
      let confirmation = try user.confirmation(of: try granted(device, &user)).message
      var answer = device.reply(to: confirmation).message
      if change == 0 { answer[answer.count - 1] ^= 1 }
      // The user's own word, sent back.
      if change == 1 { answer = [UInt8](answer.prefix(5)) + confirmation.suffix(32) }
      if change == 2 { answer[2] = 26 }
      #expect(user.fault(for: answer) == (change == 2 ? .malformed : .impostor))
      device.store.activated = [:]
    }
  }

  @Test func `one who does not know the code is found out, whatever is granted`() throws {
    let impostor = try ExampleDevice()
    try impostor.issue(.activation, otherText)
    var helper = TestUser.with(otherText)
    let challenge = try impostor.opening()
    let grant = impostor.reply(to: try helper.answer(challenge)).message
    var user = TestUser.with(activationText)
    _ = try user.answer(challenge)
    #expect(user.fault(for: grant) == .impostor)
  }

  @Test func `messages out of their order end a user's session`() throws {
    let device = try ExampleDevice()
    let challenge = try device.opening()
    var early = TestUser.with(activationText)
    #expect(throws: ActivationFault.malformed) { try early.confirm() }
    for rubbish in [[], [0x80], [UInt8](repeating: 0, count: 5000)] {
      var user = TestUser.with(activationText)
      #expect(user.fault(for: rubbish) == .malformed)
      #expect(user.fault(for: challenge) == .malformed)
    }
    var twice = TestUser.with(activationText)
    _ = try twice.answer(challenge)
    #expect(twice.fault(for: challenge) == .malformed)
    var refused = TestUser.with(activationText)
    var busy: [UInt8] = []
    VerdictMessage.encode(unsealed: .busy, into: &busy)
    #expect(refused.fault(for: busy) == .refused(.busy))
  }

  @Test func `a store that fails says so at each step, and nobody is activated`() throws {
    let device = try ExampleDevice()
    try device.issue()
    var user = TestUser.with(activationText)
    let opening = try user.answer(try device.opening())
    device.store.failsToRead = true
    #expect(device.reply(to: opening).response.status == .internal)
    device.store.failsToRead = false
    var again = TestUser.with(activationText)
    let confirmation = try again.confirmation(of: try granted(device, &again)).message
    device.store.failsToSettle = true
    let (response, message) = device.reply(to: confirmation)
    #expect(response.status == .internal && !response.isPeerAuthenticated)
    #expect(again.fault(for: message) == .refused(.internal))
    #expect(device.store.activated.isEmpty && device.store.codes.count == 1)
  }

  @Test func `wrong codes are slowed like wrong proofs, and lock nobody out`() throws {
    let device = try ExampleDevice()
    try device.issue()
    device.store.users["ann"] = UserRecord(id: 1, lastAccepted: 0)
    var delays: [UInt64] = []
    for seed: UInt64 in 0..<12 {
      var user = TestUser.with(otherText, seed: seed)
      delays.append(device.reply(to: try user.answer(try device.opening())).response.delayMilliseconds)
    }
    #expect(delays == [0, 0, 0, 0, 0, 0, 0, 0, 0, 1000, 1000, 1000])
    #expect(device.store.users["ann"]?.failureCount == 0)
  }
}
