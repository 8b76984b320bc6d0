import Testing

import HoldfastCore

/// Each rule at its bounds, their order, and what a decision makes durable.
@Suite struct DecisionTests {
  let good = RoundMaker()

  @Test func `the first rule that objects gives the status, in the order of the protocol`() {
    var facts = good.with {
      $0.round.generation = 2
      $0.round.expires = 2000
      $0.round.limits.minimumVersion = AppVersion(major: 2, minor: 0, patch: 0)
      $0.round.maximumUses = 1
      $0.ledger.uses = UseRecord(count: 1, expires: 9000)
      $0.round.integrity = .wrong
      $0.round.isCommandInToken = false
      $0.round.factors = [.integrity, .device, .otp]
    }.facts
    #expect(facts.status == .tokenRevoked)
    facts.round.generation = 3
    #expect(facts.status == .tokenExpired)
    facts.round.expires = 9000
    #expect(facts.status == .versionTooOld)
    facts.round.limits.minimumVersion = .zero
    #expect(facts.status == .usesExhausted)
    facts.ledger.uses = nil
    #expect(facts.status == .integrityMismatch)
    facts.round.integrity = .absent
    #expect(facts.status == .commandRefused)
    facts.round.isCommandInToken = true
    #expect(facts.status == .factorMissing)
    facts.round.integrity = .right
    facts.round.codes = .otp
    #expect(facts.status == .otpRejected)
    facts.round.factors = [.integrity, .device]
    #expect(facts.status == .accepted)
  }

  @Test func `the generation floor is the later of policy and ledger, and an unsigned token has only policy's`() {
    #expect(good.with { $0.ledger.generationFloor = 4 }.status == .tokenRevoked)
    #expect(good.with { $0.round.limits.generationFloor = 4 }.status == .tokenRevoked)
    #expect(good.with { $0.round.limits.generationFloor = 3 }.status == .accepted)
    let both = good.with {
      $0.round.limits.generationFloor = 5
      $0.ledger.generationFloor = 7
    }
    #expect(both.decision.notice.generationFloor == 7)
    let unsigned = good.with { $0.round.verifyingKey = nil }
    #expect(unsigned.with { $0.ledger.generationFloor = 4 }.status == .accepted)
    #expect(unsigned.with { $0.round.limits.generationFloor = 4 }.status == .tokenRevoked)
  }

  @Test(arguments: [KeyID(filledWith: 5), nil]) func `without floors, generation 0 and the least version count`(
    key: KeyID?
  ) {
    let oldest = good.with {
      ($0.round.verifyingKey, $0.ledger.generationFloor, $0.round.limits) = (key, 0, TokenLimits())
      ($0.round.generation, $0.round.version) = (0, AppVersion(major: 0, minor: 0, patch: 1))
    }
    #expect(oldest.status == .accepted)
    #expect(oldest.with { $0.round.version = .zero }.status == .accepted)
    #expect(oldest.with { $0.round.limits.generationFloor = 1 }.status == .tokenRevoked)
    #expect(oldest.with { $0.ledger.generationFloor = 1 }.status == (key == nil ? .accepted : .tokenRevoked))
  }

  @Test func `a used nonce is the reason, also while the audit log is full`() {
    let used = RoundMaker.compatibility.with { ($0.ledger.isNonceUsed, $0.ledger.isAuditLogFull) = (true, true) }
    #expect(used.status == .deviceMismatch)
    #expect(used.decision.notice.refusal == nil)
  }

  @Test func `a token ends with its exp, or when it is older than policy allows`() {
    #expect(good.with { $0.round.expires = 2001 }.status == .accepted)
    #expect(good.with { $0.round.expires = 2000 }.status == .tokenExpired)
    #expect(good.with { $0.round.limits.maximumAgeSeconds = 1000 }.status == .accepted)
    let old = good.with { $0.round.limits.maximumAgeSeconds = 999 }
    #expect(old.status == .tokenExpired)
    #expect(old.decision.notice.clock == 2000)
    let fromTheFuture = good.with {
      $0.round.issuedAt = 2500
      $0.round.limits.maximumAgeSeconds = 0
    }
    #expect(fromTheFuture.status == .accepted)
  }

  @Test func `now is the later of floor and clock`() {
    let slow = good.with { $0.ledger.clockFloor = 3000 }
    #expect(slow.with { $0.round.expires = 3000 }.status == .tokenExpired)
    #expect(slow.with { $0.round.expires = 3001 }.status == .accepted)
    let clockless = good.with { $0.round.realClock = nil }
    #expect(clockless.with { $0.round.expires = 1500 }.status == .tokenExpired)
    #expect(clockless.with { $0.round.expires = 1501 }.status == .accepted)
  }

  @Test(arguments: [
    AppVersion(major: 2, minor: 0, patch: 0), .init(major: 1, minor: 3, patch: 0), .init(major: 1, minor: 2, patch: 4),
  ])
  func `an app below the least version is too old`(least: AppVersion) {
    #expect(good.with { $0.round.limits.minimumVersion = least }.status == .versionTooOld)
    #expect(good.with { $0.ledger.minimumVersion = least }.status == .versionTooOld)
    #expect(good.with { ($0.ledger.minimumVersion, $0.round.version) = (least, least) }.status == .accepted)
    #expect(good.with { ($0.round.limits.minimumVersion, $0.round.version) = (least, least) }.status == .accepted)
    #expect(
      good.with { ($0.round.limits.minimumVersion, $0.round.version) = ($0.round.version, least) }.status == .accepted)
  }

  @Test func `a command needs policy, the token, its own user and, in a compatibility round, the switch`() {
    #expect(good.with { $0.round.factors = nil }.status == .commandRefused)
    #expect(good.with { $0.round.isCommandInToken = false }.status == .commandRefused)
    #expect(good.with { $0.round.isAnotherUsersCode = true }.status == .commandRefused)
    #expect(RoundMaker.compatibility.status == .accepted)
    #expect(RoundMaker.compatibility.with { $0.round.allowsCompatibility = false }.status == .commandRefused)
    #expect(Decision.checkFactors(good.with { $0.round.factors = nil }.facts.round)?.status == .commandRefused)
  }

  @Test func `each factor that is missing is named`() {
    for missing in [Factors.integrity, .device, .otp, .seal] {
      let round = good.with {
        $0.round.factors = .all
        $0.round.integrity = missing == .integrity ? .absent : .right
        $0.round.device = missing == .device ? .absent : .right
        $0.round.codes = Factors([.otp, .seal]).subtracting(missing)
      }
      #expect(round.status == .factorMissing)
      #expect(round.decision.notice.missingFactors == missing)
    }
  }

  @Test func `a code that cannot be tested is rejected, and one that is not required is ignored`() {
    let otp = good.with { ($0.round.factors, $0.round.codes) = (.otp, .otp) }
    #expect(otp.status == .otpRejected)
    let seal = good.with { ($0.round.factors, $0.round.codes) = (.seal, .seal) }
    #expect(seal.status == .sealRejected)
    #expect(good.with { $0.round.codes = [.otp, .seal] }.status == .accepted)
  }

  @Test func `the clock floor rises to the iat of a signed token whose holder proved the device, and never goes back`()
  {
    let ahead = good.with { $0.round.issuedAt = 1800 }
    #expect(ahead.decision.clockFloor == 1800)
    #expect(good.decision.clockFloor == 1500)
    #expect(ahead.with { $0.round.verifyingKey = nil }.decision.clockFloor == 1500)
    let compatibility = RoundMaker.compatibility.with { $0.round.issuedAt = 1800 }
    #expect(compatibility.decision.clockFloor == 1800)
    #expect(compatibility.with { $0.round.device = .absent }.decision.clockFloor == 1500)
    #expect(ahead.with { $0.round.generation = 1 }.decision.clockFloor == 1800)
  }

  @Test func `only an accepted round counts a use and raises the generation floor of a signed token`() {
    let limited = good.with {
      $0.round.maximumUses = 5
      $0.round.generation = 9
    }
    #expect(limited.decision.uses == UseRecord(count: 1, expires: 9000))
    #expect(limited.decision.generationFloor == 9)
    #expect(good.decision.uses == nil)
    let denied = limited.with { $0.round.integrity = .wrong }.decision
    #expect(denied.uses == nil)
    #expect(denied.generationFloor == nil)
    #expect(limited.with { $0.round.verifyingKey = nil }.decision.generationFloor == nil)
    let used = limited.with { $0.ledger.uses = UseRecord(count: 4, expires: 9999) }
    #expect(used.status == .accepted)
    #expect(used.decision.uses == UseRecord(count: 5, expires: 9999))
    #expect(limited.with { $0.ledger.uses = UseRecord(count: 5, expires: 1) }.status == .usesExhausted)
  }

  @Test func `a token that may have been forgotten counts as used up, unless its record is still there`() {
    let forgotten = good.with { $0.ledger.forgottenThrough = 9000 }
    #expect(forgotten.status == .accepted)
    #expect(forgotten.with { $0.round.maximumUses = 5 }.status == .usesExhausted)
    let known = forgotten.with { ($0.round.maximumUses, $0.ledger.uses) = (5, UseRecord(count: 4, expires: 1)) }
    #expect(known.status == .accepted)
    #expect(forgotten.with { ($0.round.maximumUses, $0.round.expires) = (5, 9001) }.status == .accepted)
    let nonce = RoundMaker.compatibility.with { $0.ledger.forgottenThrough = 9000 }
    #expect(nonce.status == .deviceMismatch)
    #expect(!nonce.decision.keepsNonce)
    #expect(nonce.with { $0.round.expires = 9001 }.status == .accepted)
  }

  @Test func `uses take every place, nonces at most half of them, and one token's nonces their quota`() {
    func statuses(_ recordCount: Int, nonceCount: Int = 0, _ maker: RoundMaker) -> Status {
      maker.with {
        $0.ledger.replayRoom = ReplayRoom(recordCount: recordCount, capacity: 8, nonceQuota: 2)
        $0.ledger.nonceCount = nonceCount
      }.status
    }
    let use = good.with { $0.round.maximumUses = 5 }
    #expect(statuses(7, use) == .accepted)
    #expect(statuses(8, use) == .busy)
    // A store whose capacity was lowered has less than no room.
    #expect(statuses(9, use) == .busy)
    #expect(statuses(8, use.with { $0.ledger.uses = UseRecord(count: 1, expires: 9000) }) == .accepted)
    let nonce = RoundMaker.compatibility
    #expect(statuses(3, nonce) == .accepted)
    #expect(statuses(4, nonce) == .busy)
    #expect(statuses(3, nonceCount: 1, nonce) == .accepted)
    #expect(statuses(3, nonceCount: 2, nonce) == .busy)
    // The nonce takes the last place, and none is left for the use.
    let both = nonce.with {
      $0.round.maximumUses = 5
      $0.ledger.replayRoom = ReplayRoom(recordCount: 0, capacity: 1, nonceQuota: 1)
    }
    #expect(both.status == .busy)
    #expect(both.decision.keepsNonce)
    #expect(both.with { $0.ledger.uses = UseRecord(count: 1, expires: 9000) }.status == .accepted)
  }

  @Test func `a token whose uses cannot be counted is busy, but no other and no denied one`() {
    let full = good.with { $0.ledger.replayRoom = ReplayRoom(recordCount: 8, capacity: 8, nonceQuota: 2) }
    #expect(full.status == .accepted)
    #expect(full.with { $0.round.maximumUses = 5 }.status == .busy)
    #expect(full.with { $0.round.maximumUses = 5 }.decision.uses == nil)
    let denied = full.with {
      $0.round.maximumUses = 5
      $0.round.integrity = .wrong
    }
    #expect(denied.status == .integrityMismatch)
  }

  @Test(arguments: [(2240, false), (2241, true), (2300, true), (2301, false)] as [(UInt64, Bool)])
  func `a challenge is protected for its first minute, and one from the future is not`(expires: UInt64, isBusy: Bool) {
    let asking = good.with {
      $0.round.freshChallenge = FixedBytes(filledWith: 9)
      var user = UserRecord(id: 1, lastAccepted: 2000)
      user.challenge = IssuedChallenge(bytes: FixedBytes(filledWith: 8), expires: expires)
      $0.ledger.user = user
    }
    #expect(asking.status == (isBusy ? .busy : .accepted))
    #expect(asking.decision.notice.refusal == (isBusy ? .challengePending : nil))
    #expect(asking.with { $0.round.freshChallenge = nil }.status == .accepted)
    // Whether a challenge is pending is nothing that a denied round is told.
    let denied = asking.with { $0.round.integrity = .wrong }.decision
    #expect(denied.status == .integrityMismatch && denied.notice.refusal == nil)
  }

  @Test func `a compatibility nonce is used up whatever the verdict, and refused before any other reason`() {
    let denied = RoundMaker.compatibility.with { $0.round.expires = 2000 }
    #expect(denied.status == .tokenExpired)
    #expect(denied.decision.keepsNonce)
    let used = denied.with { $0.ledger.isNonceUsed = true }
    #expect(used.status == .deviceMismatch)
    #expect(!used.decision.keepsNonce)
    let full = denied.with { $0.ledger.nonceCount = 2 }
    #expect(full.status == .busy)
    #expect(!full.decision.keepsNonce)
    #expect(!good.decision.keepsNonce)
  }
}
