import TestSupport
import Testing

import HoldfastCore

@Suite struct CodeWindowTests {
  private let limits = CodeLimits()
  private let now: UInt64 = 1_790_000_100

  private func window(
    _ method: CodeMethod, next: UInt64 = 0, offset: Int64 = 0, silence: UInt64 = 0, now: UInt64? = nil,
    limits: CodeLimits = CodeLimits()
  ) -> Ranges {
    let now = now ?? self.now
    var user = UserRecord(id: 1, lastAccepted: now - min(silence, now))
    user.clockOffsetSeconds = offset
    return Ranges(CodeWindow(CodeAccount(method: method, nextPosition: next), of: user, now: now, limits: limits))
  }

  @Test func `counters are looked for from the high-water mark on, and two in a row further`() {
    #expect(window(hotpMethod, next: 5) == Ranges(near: 5..<15, far: 5..<205))
    var wide = limits
    wide.counterLookAhead = 100
    #expect(window(hotpMethod, next: 5, limits: wide) == Ranges(near: 5..<105, far: 5..<205))
  }

  @Test func `counters end where integers do`() {
    let last = maximumInteger - 1
    #expect(window(hotpMethod, next: last) == Ranges(near: last..<last + 1, far: last..<last + 1))
    #expect(window(hotpMethod, next: maximumInteger).far.isEmpty)
  }

  @Test func `a step to each side is near, and an hour to each side is far`() {
    let step = now / 30
    #expect(window(totpMethod) == Ranges(near: step - 1..<step + 2, far: step - 120..<step + 121))
    let minute = now / 60
    #expect(window(timeSealMethod) == Ranges(near: minute - 1..<minute + 2, far: minute - 60..<minute + 61))
  }

  @Test func `steps that were used up are in no window`() {
    let step = now / 30
    #expect(window(totpMethod, next: step + 1).near == step + 1..<step + 2)
    #expect(window(totpMethod, next: step + 2).near.isEmpty)
    #expect(window(totpMethod, next: step + 2).far == step + 2..<step + 121)
    #expect(window(totpMethod, next: step + 500).far.isEmpty)
  }

  @Test func `the window follows the user's clock, not before 1970`() {
    let step = (now + 300) / 30
    #expect(window(totpMethod, offset: 300).near == step - 1..<step + 2)
    #expect(window(totpMethod, offset: -1000, now: 500).near == 0..<2)
    #expect(window(totpMethod, offset: .min, now: 500).near == 0..<2)
  }

  @Test func `the tolerance grows with silence, by two seconds a day, to ten minutes`() {
    for (days, seconds) in [(UInt64(0), UInt64(30)), (1, 32), (15, 60), (100, 230), (285, 600), (286, 600)] {
      #expect(limits.toleranceSeconds(silenceSeconds: days * 86_400) == seconds)
    }
    #expect(limits.toleranceSeconds(silenceSeconds: 86_399) == 30)
    #expect(limits.toleranceSeconds(silenceSeconds: .max) == 600)
    let step = now / 30
    #expect(window(totpMethod, silence: 16 * 86_400).near == step - 3..<step + 4)
    #expect(window(totpMethod, silence: now).near == step - 20..<step + 21)
  }

  @Test func `a policy that tolerates more than the cap keeps what it says`() {
    let wide = CodeLimits(clockToleranceSeconds: 700)
    #expect(wide.toleranceSeconds(silenceSeconds: 0) == 700)
    #expect(wide.toleranceSeconds(silenceSeconds: 400 * 86_400) == 700)
  }

  @Test func `a clock that went back means no silence`() {
    var user = UserRecord(id: 1, lastAccepted: now + 1_000_000)
    user.accounts[.otp] = CodeAccount(method: totpMethod)
    #expect(Ranges(CodeWindow(user.accounts[.otp]!, of: user, now: now, limits: limits)) == window(totpMethod))
  }

  @Test func `a suite with a challenge of the device has one place`() {
    #expect(window(challengeSealMethod, next: 9) == Ranges(near: 0..<1, far: 0..<1))
  }

  @Test func `a device takes passwords from a counter, the time or a challenge, and seals over a digest only`() {
    for method in [hotpMethod, totpMethod] {
      #expect(CodeAccount.canVerify(method, for: .otp))
      // It would be good for any command.
      #expect(!CodeAccount.canVerify(method, for: .seal) && !CodeAccount.canVerify(method, for: .host))
    }
    for method in [counterSealMethod, timeSealMethod, challengeSealMethod] {
      #expect(CodeAccount.canVerify(method, for: .seal))
      #expect(CodeAccount.canVerify(method, for: .otp) && !CodeAccount.canVerify(method, for: .host))
    }
    for suite in [
      "OCRA-1:HOTP-SHA256-8:QN64-T1M", "OCRA-1:HOTP-SHA256-8:QA64", "OCRA-1:HOTP-SHA256-8:QH32",
      "OCRA-1:HOTP-SHA256-0:QH64", "OCRA-1:HOTP-SHA256-8:C-QH64-T1M", "OCRA-1:HOTP-SHA256-8:QH64-PSHA1",
      "OCRA-1:HOTP-SHA256-8:QH64-S064",
    ] {
      #expect(!CodeAccount.canVerify(.ocra(OCRASuite(suite)!), for: .seal))
    }
  }

  @Test func `near is within far, whatever the period, offset and silence`() {
    for period: UInt64 in [1, 7, 30, 59, 60, 600, 3599, 3600, 86_400] {
      for offset: Int64 in [-4000, -29, 0, 1, 31, 7200] {
        for silence: UInt64 in [0, 40, 300, 4000] {
          for next: UInt64 in [0, now / period - 1, now / period, now / period + 1, now / period + 2] {
            let method = CodeMethod.totp(.sha1, .six, periodSeconds: period)
            let window = window(method, next: next, offset: offset, silence: silence * 86_400)
            #expect(window.near.isEmpty || window.far.lowerBound <= window.near.lowerBound)
            #expect(window.near.isEmpty || window.far.upperBound >= window.near.upperBound)
            #expect(window.far.isEmpty || window.far.lowerBound >= next)
          }
        }
      }
    }
  }
}

private struct Ranges: Equatable {
  let near: Range<UInt64>
  let far: Range<UInt64>

  init(near: Range<UInt64>, far: Range<UInt64>) {
    (self.near, self.far) = (near, far)
  }

  init(_ window: CodeWindow) {
    (near, far) = (window.near, window.far)
  }
}
