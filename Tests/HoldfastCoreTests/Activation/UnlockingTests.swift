import Testing

import HoldfastCore

@Suite struct UnlockingTests {
  private func lockedDevice() throws -> ExampleDevice {
    let device = try ExampleDevice()
    var ann = UserRecord(id: 1, lastAccepted: 0)
    (ann.failureCount, ann.lockedUntil) = (9, device.clock.seconds! + 480)
    device.store.users["ann"] = ann
    return device
  }

  @Test func `the owner's code lets a user try again, once`() throws {
    let device = try lockedDevice()
    try device.issue(.unlock)
    var user = TestUser.with(activationText, .unlock)
    let message = try user.answer(try device.opening())
    let (response, answer) = device.reply(to: message)
    #expect(response.status == .accepted && response.isPeerAuthenticated && !response.awaitsConfirmation)
    #expect(response.credential == .code(1))
    guard case .done = try user.receive(answer.span) else {
      Issue.record("not done")
      return
    }
    #expect(device.store.users["ann"]?.failureCount == 0 && device.store.users["ann"]?.lockedUntil == 0)
    #expect(device.reply(to: message).response.status == .challengeExpired)
    var again = TestUser.with(activationText, .unlock)
    #expect(device.reply(to: try again.answer(try device.opening())).response.status == .otpRejected)
    #expect(device.store.unlocked == ["ann"])
  }

  @Test func `a code that is wrong, out of time, for activation, or of another challenge unlocks nobody`() throws {
    for (text, purpose, lifetime) in [
      (otherText, OneUseCode.Purpose.unlock, UInt64(600)), (activationText, .activation, 600),
      (activationText, .unlock, 0),
    ] {
      let device = try lockedDevice()
      try device.issue(purpose, text, lifetime: lifetime)
      var user = TestUser.with(activationText, .unlock)
      let (response, message) = device.reply(to: try user.answer(try device.opening()))
      #expect(response.status == .otpRejected && user.fault(for: message) == .refused(.otpRejected))
      #expect(device.store.users["ann"]?.failureCount == 9)
    }
    let device = try lockedDevice()
    try device.issue(.unlock)
    var user = TestUser.with(activationText, .unlock)
    let message = try user.answer(try device.opening())
    _ = try device.opening()
    #expect(device.reply(to: message).response.status == .otpRejected)
    #expect(device.store.users["ann"]?.failureCount == 9)
  }

  @Test func `what is no challenge gets no answer`() throws {
    let challenge = try lockedDevice().opening()
    for purpose in [OneUseCode.Purpose.unlock, .activation] {
      for message in [[], [0x80], Array(challenge.dropLast()), challenge + [0]] {
        var user = TestUser.with(activationText, purpose)
        #expect(user.fault(for: message) == .malformed)
        let isSilent = user.outgoing.count == 0
        #expect(isSilent)
      }
    }
  }

  @Test func `a device that does not know the code is found out`() throws {
    let device = try lockedDevice()
    try device.issue(.unlock)
    for change in 0..<3 {
      try device.issue(.unlock)
      var user = TestUser.with(activationText, .unlock)
      let message = try user.answer(try device.opening())
      var answer = device.reply(to: message).message
      if change == 0 { answer[answer.count - 1] ^= 1 }
      // What the user sent, sent back.
      if change == 1 { answer = [UInt8](answer.prefix(5)) + message.suffix(32) }
      if change == 2 { answer[2] = 24 }
      #expect(user.fault(for: answer) == (change == 2 ? .malformed : .impostor))
    }
  }

  @Test func `a store that fails unlocks nobody`() throws {
    let device = try lockedDevice()
    try device.issue(.unlock)
    device.store.failsToSettle = true
    var user = TestUser.with(activationText, .unlock)
    #expect(device.reply(to: try user.answer(try device.opening())).response.status == .internal)
    #expect(device.store.users["ann"]?.failureCount == 9 && device.store.codes.count == 1)
  }
}
