import Testing

@testable import HoldfastCore

/// Each rule at its bounds, their order, and what a decision makes durable.
@Suite struct DecisionTests {
  let good = RoundMaker()

  @Test func `the first rule that objects gives the status, in the order of the protocol`() {
    var round = good.with {
      $0.generation = 2
      $0.expires = 2000
      $0.limits.minimumVersion = AppVersion(major: 2, minor: 0, patch: 0)
      $0.maximumUses = 1
      $0.ledger.uses = 1
      $0.integrity = .wrong
      $0.isCommandInToken = false
      $0.factors = [.integrity, .device, .otp]
    }
    #expect(round.status == .tokenRevoked)
    round.generation = 3
    #expect(round.status == .tokenExpired)
    round.expires = 9000
    #expect(round.status == .versionTooOld)
    round.limits.minimumVersion = .zero
    #expect(round.status == .usesExhausted)
    round.ledger.uses = 0
    #expect(round.status == .integrityMismatch)
    round.integrity = .absent
    #expect(round.status == .commandRefused)
    round.isCommandInToken = true
    #expect(round.status == .factorMissing)
    round.integrity = .right
    round.codes = .otp
    #expect(round.status == .otpRejected)
    round.factors = [.integrity, .device]
    #expect(round.status == .accepted)
  }

  @Test func `the generation floor is the later of policy and ledger, and an unsigned token has only policy's`() {
    #expect(good.with { $0.ledger.generationFloor = 4 }.status == .tokenRevoked)
    #expect(good.with { $0.limits.generationFloor = 4 }.status == .tokenRevoked)
    #expect(good.with { $0.limits.generationFloor = 3 }.status == .accepted)
    let both = good.with {
      $0.limits.generationFloor = 5
      $0.ledger.generationFloor = 7
    }
    #expect(both.decision.notice.generationFloor == 7)
    let unsigned = good.with { $0.isSigned = false }
    #expect(unsigned.with { $0.ledger.generationFloor = 4 }.status == .accepted)
    #expect(unsigned.with { $0.limits.generationFloor = 4 }.status == .tokenRevoked)
  }

  @Test func `a token ends with its exp, or when it is older than policy allows`() {
    #expect(good.with { $0.expires = 2001 }.status == .accepted)
    #expect(good.with { $0.expires = 2000 }.status == .tokenExpired)
    #expect(good.with { $0.limits.maximumAgeSeconds = 1000 }.status == .accepted)
    let old = good.with { $0.limits.maximumAgeSeconds = 999 }
    #expect(old.status == .tokenExpired)
    #expect(old.decision.notice.clock == 2000)
    let fromTheFuture = good.with {
      $0.issuedAt = 2500
      $0.limits.maximumAgeSeconds = 0
    }
    #expect(fromTheFuture.status == .accepted)
  }

  @Test func `now is the later of floor and clock`() {
    let slow = good.with { $0.ledger.clockFloor = 3000 }
    #expect(slow.with { $0.expires = 3000 }.status == .tokenExpired)
    #expect(slow.with { $0.expires = 3001 }.status == .accepted)
    let clockless = good.with { $0.realClock = nil }
    #expect(clockless.with { $0.expires = 1500 }.status == .tokenExpired)
    #expect(clockless.with { $0.expires = 1501 }.status == .accepted)
  }

  @Test(arguments: [
    AppVersion(major: 2, minor: 0, patch: 0), .init(major: 1, minor: 3, patch: 0), .init(major: 1, minor: 2, patch: 4),
  ])
  func `an app below the least version is too old`(least: AppVersion) {
    #expect(good.with { $0.limits.minimumVersion = least }.status == .versionTooOld)
    #expect(good.with { ($0.limits.minimumVersion, $0.version) = (least, least) }.status == .accepted)
    #expect(good.with { ($0.limits.minimumVersion, $0.version) = ($0.version, least) }.status == .accepted)
  }

  @Test func `a command needs policy, the token, its own user and, in a compatibility round, the switch`() {
    #expect(good.with { $0.factors = nil }.status == .commandRefused)
    #expect(good.with { $0.isCommandInToken = false }.status == .commandRefused)
    #expect(good.with { $0.isAnotherUsersCode = true }.status == .commandRefused)
    #expect(RoundMaker.compatibility.status == .accepted)
    #expect(RoundMaker.compatibility.with { $0.allowsCompatibility = false }.status == .commandRefused)
    #expect(Decision.checkFactors(good.with { $0.factors = nil }.round)?.status == .commandRefused)
  }

  @Test func `each factor that is missing is named`() {
    for missing in [Factors.integrity, .device, .otp, .seal] {
      let round = good.with {
        $0.factors = .all
        $0.integrity = missing == .integrity ? .absent : .right
        $0.device = missing == .device ? .absent : .right
        $0.codes = Factors([.otp, .seal]).subtracting(missing)
      }
      #expect(round.status == .factorMissing)
      #expect(round.decision.notice.missingFactors == missing)
    }
  }

  @Test func `a code that cannot be tested is rejected, and one that is not required is ignored`() {
    let otp = good.with { ($0.factors, $0.codes) = (.otp, .otp) }
    #expect(otp.status == .otpRejected)
    let seal = good.with { ($0.factors, $0.codes) = (.seal, .seal) }
    #expect(seal.status == .sealRejected)
    #expect(good.with { $0.codes = [.otp, .seal] }.status == .accepted)
  }

  @Test func `the clock floor rises to the iat of a signed token whose holder proved the device, and never goes back`()
  {
    let ahead = good.with { $0.issuedAt = 1800 }
    #expect(ahead.decision.clockFloor == 1800)
    #expect(good.decision.clockFloor == 1500)
    #expect(ahead.with { $0.isSigned = false }.decision.clockFloor == 1500)
    let compatibility = RoundMaker.compatibility.with { $0.issuedAt = 1800 }
    #expect(compatibility.decision.clockFloor == 1800)
    #expect(compatibility.with { $0.device = .absent }.decision.clockFloor == 1500)
    #expect(ahead.with { $0.generation = 1 }.decision.clockFloor == 1800)
  }

  @Test func `only an accepted round counts a use and raises the generation floor of a signed token`() {
    let limited = good.with {
      $0.maximumUses = 5
      $0.generation = 9
    }
    #expect(limited.decision.countsUse)
    #expect(limited.decision.generationFloor == 9)
    #expect(good.decision.countsUse == false)
    let denied = limited.with { $0.integrity = .wrong }.decision
    #expect(!denied.countsUse)
    #expect(denied.generationFloor == nil)
    #expect(limited.with { $0.isSigned = false }.decision.generationFloor == nil)
    #expect(limited.with { $0.ledger.uses = 4 }.status == .accepted)
    #expect(limited.with { $0.ledger.uses = 5 }.status == .usesExhausted)
  }

  @Test func `a token whose uses cannot be counted is busy, but no other and no denied one`() {
    let full = good.with { $0.ledger.canCountUses = false }
    #expect(full.status == .accepted)
    #expect(full.with { $0.maximumUses = 5 }.status == .busy)
    #expect(!full.with { $0.maximumUses = 5 }.decision.countsUse)
    let denied = full.with {
      $0.maximumUses = 5
      $0.integrity = .wrong
    }
    #expect(denied.status == .integrityMismatch)
  }

  @Test func `a compatibility nonce is used up whatever the verdict, and refused before any other reason`() {
    let denied = RoundMaker.compatibility.with { $0.expires = 2000 }
    #expect(denied.status == .tokenExpired)
    #expect(denied.decision.keepsNonce)
    let used = denied.with { $0.ledger.isNonceUsed = true }
    #expect(used.status == .deviceMismatch)
    #expect(!used.decision.keepsNonce)
    let full = denied.with { $0.ledger.canKeepNonce = false }
    #expect(full.status == .busy)
    #expect(!full.decision.keepsNonce)
    #expect(!good.decision.keepsNonce)
  }
}
