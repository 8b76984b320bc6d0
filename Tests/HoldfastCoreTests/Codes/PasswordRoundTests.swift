import TestSupport
import Testing

import HoldfastCore

/// One-time passwords in whole rounds.
@Suite struct PasswordRoundTests {
  @Test func `a counter's code is accepted within the look-ahead, once, and none before it`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    #expect(try coded.ask(otp: coded.otp(10)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(9)) == .accepted)
    #expect(coded.ann.accounts[.otp]?.nextPosition == 10)
    for used: UInt64 in [9, 0, 5] {
      #expect(try coded.ask(otp: coded.otp(used)) == .otpRejected)
    }
    #expect(try coded.ask(otp: coded.otp(10)) == .accepted)
    #expect(coded.device.lock.performed.count == 2)
  }

  @Test func `a time step's code is accepted one step to each side, once, and none before it`() throws {
    let coded = try CodedDevice([.device, .otp], otp: totpMethod)
    #expect(try coded.ask(otp: coded.otp(ahead: 60)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(ahead: -60)) == .otpRejected)
    let early = try coded.otp(ahead: -30)
    #expect(try coded.ask(otp: early) == .accepted)
    #expect(try coded.ask(otp: early) == .otpRejected)
    let current = try coded.otp(ahead: 0)
    let late = try coded.otp(ahead: 30)
    #expect(try coded.ask(otp: current) == .accepted)
    #expect(try coded.ask(otp: late) == .accepted)
    for used in [early, current, late] { #expect(try coded.ask(otp: used) == .otpRejected) }
  }

  @Test func `after silence a clock may be further off, and after an accepted code no more`() throws {
    let coded = try CodedDevice([.device, .otp], otp: totpMethod)
    coded.now += 60 * 86_400
    #expect(try coded.ask(otp: coded.otp(ahead: 150)) == .accepted)
    #expect(coded.ann.lastAccepted == coded.now)
    coded.now += 300
    #expect(try coded.ask(otp: coded.otp(ahead: 150 + 90)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(ahead: 150)) == .accepted)
  }

  @Test func `a clock that runs fast is followed for as long as codes keep coming`() throws {
    let coded = try CodedDevice([.device, .otp], otp: totpMethod)
    for day: Int64 in 1...200 {
      coded.now += 86_400
      #expect(try coded.ask(otp: coded.otp(ahead: day * 20)) == .accepted, "day \(day)")
    }
    #expect((3950...4000).contains(coded.ann.clockOffsetSeconds))
    let slow = try CodedDevice([.device, .otp], otp: totpMethod)
    for day: Int64 in 1...200 {
      slow.now += 86_400
      #expect(try slow.ask(otp: slow.otp(ahead: -day * 20)) == .accepted, "day \(day)")
    }
  }

  @Test func `a clock that goes back makes no used code good`() throws {
    let coded = try CodedDevice([.device, .otp], otp: totpMethod)
    let codes = try (-1...1).map { try coded.otp(ahead: $0 * 30) }
    for code in codes { #expect(try coded.ask(otp: code) == .accepted) }
    for back: UInt64 in [10, 30, 60] {
      coded.now -= back
      for code in codes {
        coded.waitOutLockout()
        coded.ann.unlock()
        coded.now = min(coded.now, 1_790_000_100)
        #expect(try coded.ask(otp: code) == .otpRejected)
      }
    }
    #expect(coded.device.lock.performed.count == 3)
  }

  @Test func `two connections with one code: the second finds it taken`() throws {
    for method in [hotpMethod, totpMethod] {
      let coded = try CodedDevice([.device, .otp], otp: method)
      let code = try coded.otp(method == hotpMethod ? 0 : coded.now / 30)
      var inner: Status?
      coded.device.store.onAttempt = {
        coded.device.store.onAttempt = {}
        // Another connection of the same device, in the middle of this round.
        let other = try? CodedDevice([.device, .otp], otp: method)
        other?.ann = coded.ann
        inner = try? other?.ask(otp: code)
        if let other { coded.ann = other.ann }
      }
      #expect(try coded.ask(otp: code) == .otpRejected)
      #expect(inner == .accepted && coded.device.lock.performed.isEmpty)
      #expect(coded.ann.accounts[.otp]?.nextPosition == (method == hotpMethod ? 1 : coded.now / 30 + 1))
    }
  }

  @Test func `a user who was replaced in between is denied, and the new one untouched`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    var other = UserRecord(id: 8, lastAccepted: 0)
    other.accounts[.otp] = CodeAccount(method: hotpMethod)
    coded.device.store.onAttempt = { coded.device.store.users["ann"] = other }
    #expect(try coded.ask(otp: coded.otp(0)) == .otpRejected)
    #expect(coded.ann == other && coded.device.lock.performed.isEmpty)
  }

  @Test func `a user who was removed in between is denied`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    coded.device.store.onAttempt = { coded.device.store.users = [:] }
    #expect(try coded.ask(otp: coded.otp(0)) == .otpRejected)
    #expect(coded.device.lock.performed.isEmpty)
  }

  @Test func `what ends a token in between ends the round, and the code is not used up`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    coded.device.store.onAttempt = { coded.device.store.losesTrust = true }
    #expect(try coded.ask(otp: coded.otp(0)) == .tokenInvalid)
    #expect(coded.device.lock.performed.isEmpty && coded.ann.failureCount == 1)
  }

  @Test func `codes that are no codes are denied`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    let right = try coded.otp(0).description
    for wrong in [
      "", " ", right + " ", right + "0", String(right.dropLast()), "0" + right, String(repeating: "0", count: 16),
    ] {
      coded.ann.unlock()
      #expect(try coded.ask(otp: BoundedText(wrong)!) == .otpRejected, "\(wrong.count) characters")
    }
    #expect(coded.ann.accounts[.otp]?.nextPosition == 0)
  }

  @Test func `a use of the token is counted once, and only for a right code`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    coded.token.maximumUses = 2
    #expect(try coded.ask(otp: "000000") == .otpRejected)
    #expect(coded.device.store.uses.isEmpty)
    #expect(try coded.ask(otp: coded.otp(0)) == .accepted)
    #expect(coded.device.store.uses.values.map(\.count) == [1])
    #expect(try coded.ask(otp: coded.otp(1)) == .accepted)
    let before = coded.ann
    #expect(try coded.ask(otp: coded.otp(2)) == .usesExhausted)
    #expect(coded.ann == before)
  }
}
