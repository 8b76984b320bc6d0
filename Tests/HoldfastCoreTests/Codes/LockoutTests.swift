import TestSupport
import Testing

import HoldfastCore

@Suite struct LockoutTests {
  @Test func `the fifth failure costs half a minute, each further one twice as much, up to a day`() {
    let expected: [UInt64] = [
      0, 0, 0, 0, 0, 30, 60, 120, 240, 480, 960, 1920, 3840, 7680, 15_360, 30_720, 61_440, 86_400, 86_400,
    ]
    #expect((0..<19).map { Lockout.seconds(afterFailures: UInt64($0)) } == expected)
    #expect(Lockout.seconds(afterFailures: .max) == 86_400)
  }

  @Test func `five wrong codes lock a user out, and what comes then is not looked at`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    for count: UInt64 in 1...4 {
      #expect(try coded.ask(otp: "000000") == .otpRejected)
      #expect(coded.ann.failureCount == count && coded.ann.lockedUntil == 0 && coded.retryAfterSeconds == nil)
    }
    #expect(try coded.ask(otp: "000000") == .otpRejected)
    #expect(coded.retryAfterSeconds == 30 && coded.ann.lockedUntil == coded.now + 30)
    let locked = coded.ann
    #expect(try coded.ask(otp: coded.otp(0)) == .lockedOut)
    #expect(coded.retryAfterSeconds == 30 && coded.ann == locked)
    coded.now += 29
    #expect(try coded.ask(otp: coded.otp(0)) == .lockedOut)
    #expect(coded.retryAfterSeconds == 1 && coded.ann == locked)
    coded.now += 1
    #expect(try coded.ask(otp: coded.otp(0)) == .accepted)
    #expect(coded.ann.failureCount == 0 && coded.ann.lockedUntil == 0)
    #expect(coded.device.lock.performed == ["unlock"])
  }

  @Test func `without a clock a lockout begins at the time of the token that came with the failure`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    for _ in 0..<4 { _ = try coded.ask(otp: "000000") }
    let later = coded.now + 1000
    coded.token.issuedAt = later
    coded.device.clock.seconds = nil
    #expect(try coded.ask(otp: "000000") == .otpRejected)
    #expect(coded.retryAfterSeconds == 30 && coded.ann.lockedUntil == later + 30)
    #expect(try coded.ask(otp: coded.otp(0)) == .lockedOut)
  }

  @Test func `each failure after a lockout doubles it, and the seal of the verdict says how long it is`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    for _ in 0..<4 { _ = try coded.ask(otp: "000000") }
    for wait: UInt64 in [30, 60, 120, 240] {
      coded.waitOutLockout()
      var prover = try Prover.with(try coded.token.token(), request: try coded.request(otp: "000000"))
      guard case .done(let verdict) = try coded.device.round(&prover).step else {
        Issue.record("no verdict")
        return
      }
      #expect(verdict.isAuthenticated && verdict.status == .otpRejected && verdict.notice.retryAfterSeconds == wait)
    }
    #expect(coded.ann.failureCount == 8)
  }

  @Test func `a right code as the fifth is accepted`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    for _ in 0..<4 { _ = try coded.ask(otp: "000000") }
    #expect(try coded.ask(otp: coded.otp(0)) == .accepted)
    #expect(coded.ann.failureCount == 0 && coded.ann.lockedUntil == 0)
  }

  @Test func `who knows one secret gets no more guesses at the other by it`() throws {
    let coded = try CodedDevice([.device, .seal], otp: hotpMethod, seal: counterSealMethod)
    func guess() throws -> Status {
      coded.device.policy.rules["unlock"]?.factors = [.device, .seal]
      return try coded.ask(seal: "00000000")
    }
    func password(_ counter: UInt64) throws -> Status {
      coded.device.policy.rules["unlock"]?.factors = [.device, .otp]
      return try coded.ask(otp: coded.otp(counter))
    }
    for count: UInt64 in 1...4 {
      #expect(try guess() == .sealRejected)
      #expect(try password(count) == .accepted)
      #expect(coded.ann.failureCount == count && coded.ann.failedFactors == .seal)
    }
    #expect(try guess() == .sealRejected && coded.retryAfterSeconds == 30)
    #expect(try password(5) == .lockedOut)
    coded.waitOutLockout()
    #expect(try password(5) == .accepted)
    #expect(coded.ann.failureCount == 5 && coded.ann.lockedUntil == 0)
    #expect(try guess() == .sealRejected && coded.retryAfterSeconds == 60)
    coded.waitOutLockout()
    coded.device.policy.rules["unlock"]?.factors = [.device, .seal]
    #expect(try coded.ask(seal: coded.seal(0)) == .accepted)
    #expect(coded.ann.failureCount == 0 && coded.ann.failedFactors == [])
  }

  @Test func `a clock that goes back ends no lockout`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    for _ in 0..<5 { _ = try coded.ask(otp: "000000") }
    coded.now -= 50
    #expect(try coded.ask(otp: coded.otp(0)) == .lockedOut)
    #expect(coded.retryAfterSeconds == 80)
  }

  @Test func `one user's failures are not another's`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    coded.device.store.users["bob"] = UserRecord(id: 8, lastAccepted: 0)
    coded.device.store.users["bob"]?.accounts[.otp] = CodeAccount(method: hotpMethod)
    for _ in 0..<5 { _ = try coded.ask(otp: "000000") }
    #expect(try coded.ask(otp: coded.otp(0), user: "bob") == .accepted)
    #expect(try coded.ask(otp: coded.otp(0)) == .lockedOut)
  }

  @Test func `a failure is counted before anything is compared, and stays when nothing follows`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    var counts: [UInt64] = []
    coded.device.store.onAttempt = {
      counts.append(coded.ann.failureCount)
      coded.device.store.failsToSettle = true
    }
    for _ in 0..<5 {
      coded.device.store.failsToSettle = false
      #expect(try coded.ask(otp: coded.otp(0)) == .internal)
    }
    coded.device.store.failsToSettle = false
    #expect(counts == [1, 2, 3, 4, 5])
    #expect(coded.ann.accounts[.otp]?.nextPosition == 0 && coded.device.lock.performed.isEmpty)
    #expect(try coded.ask(otp: coded.otp(0)) == .lockedOut)
  }

  @Test func `a code whose user has no account of its kind counts nothing`() throws {
    let coded = try CodedDevice([.device, .otp], seal: counterSealMethod)
    #expect(try coded.ask(otp: "000000") == .otpRejected)
    #expect(coded.ann.failureCount == 0)
    let other = try CodedDevice([.device, .seal], otp: hotpMethod)
    #expect(try other.ask(seal: "00000000") == .sealRejected)
    #expect(other.ann.failureCount == 0)
  }
}
