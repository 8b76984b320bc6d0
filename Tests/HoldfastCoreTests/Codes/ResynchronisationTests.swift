import TestSupport
import Testing

import HoldfastCore

/// Two codes in a row bring back a counter or a clock that went astray.
@Suite struct ResynchronisationTests {
  private func counter() throws -> CodedDevice { try CodedDevice([.device, .otp], otp: hotpMethod) }

  @Test func `two codes in a row resynchronise a counter`() throws {
    for first: UInt64 in [10, 11, 100, 198] {
      let coded = try counter()
      #expect(try coded.ask(otp: coded.otp(first)) == .otpRejected)
      #expect(coded.ann.accounts[.otp]?.nextPosition == 0 && coded.ann.failureCount == 1)
      #expect(try coded.ask(otp: coded.otp(first + 1)) == .accepted)
      #expect(coded.ann.accounts[.otp]?.nextPosition == first + 2 && coded.ann.failureCount == 0)
    }
  }

  /// Among six digits, two of some hundred codes are often the same.
  @Test func `the second code of a row may also be the code of an earlier position`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod, key: "00000000000000000000000000000025")
    #expect(try coded.otp(25) == coded.otp(142))
    #expect(try coded.ask(otp: coded.otp(141)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(142)) == .accepted)
    #expect(coded.ann.accounts[.otp]?.nextPosition == 143)
  }

  @Test func `two codes in a row beyond the furthest do not`() throws {
    for first: UInt64 in [199, 200, 1000] {
      let coded = try counter()
      #expect(try coded.ask(otp: coded.otp(first)) == .otpRejected)
      #expect(try coded.ask(otp: coded.otp(first + 1)) == .otpRejected)
    }
  }

  @Test func `neither the same code twice, nor a gap, nor the wrong order resynchronises`() throws {
    for (first, second) in [(UInt64(50), UInt64(50)), (50, 52), (50, 49)] {
      let coded = try counter()
      #expect(try coded.ask(otp: coded.otp(first)) == .otpRejected)
      #expect(try coded.ask(otp: coded.otp(second)) == .otpRejected)
      #expect(coded.ann.accounts[.otp]?.nextPosition == 0)
    }
  }

  @Test func `a wrong code in between breaks the row`() throws {
    let coded = try counter()
    #expect(try coded.ask(otp: coded.otp(50)) == .otpRejected)
    #expect(try coded.ask(otp: "000000") == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(51)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(52)) == .accepted)
  }

  @Test func `an accepted code in between breaks the row`() throws {
    let coded = try counter()
    #expect(try coded.ask(otp: coded.otp(50)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(3)) == .accepted)
    #expect(try coded.ask(otp: coded.otp(51)) == .otpRejected)
    #expect(coded.ann.accounts[.otp]?.nextPosition == 4)
  }

  @Test func `the same pair does not come twice, and nothing before it`() throws {
    let coded = try counter()
    #expect(try coded.ask(otp: coded.otp(50)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(51)) == .accepted)
    for position: UInt64 in [50, 51, 49, 50, 51, 3] {
      coded.ann.unlock()
      #expect(try coded.ask(otp: coded.otp(position)) == .otpRejected)
    }
    #expect(coded.ann.accounts[.otp]?.nextPosition == 52)
  }

  @Test func `a row that is broken by a lockout goes on after it`() throws {
    let coded = try counter()
    for _ in 0..<4 { _ = try coded.ask(otp: "000000") }
    #expect(try coded.ask(otp: coded.otp(50)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(51)) == .lockedOut)
    coded.waitOutLockout()
    #expect(try coded.ask(otp: coded.otp(51)) == .accepted)
  }

  @Test func `two codes in a row resynchronise a clock, which is followed from then on`() throws {
    for ahead: Int64 in [-3570, -90, 90, 3540] {
      let coded = try CodedDevice([.device, .otp], otp: totpMethod)
      let first = try coded.otp(ahead: ahead)
      #expect(try coded.ask(otp: first) == .otpRejected)
      #expect(try coded.ask(otp: first) == .otpRejected)
      coded.now += 30
      let second = try coded.otp(ahead: ahead)
      #expect(try coded.ask(otp: second) == .accepted, "\(ahead) s ahead")
      #expect((ahead - 30...ahead + 30).contains(coded.ann.clockOffsetSeconds))
      for used in [first, second] { #expect(try coded.ask(otp: used) == .otpRejected) }
      coded.now += 30
      #expect(try coded.ask(otp: coded.otp(ahead: ahead)) == .accepted)
    }
  }

  @Test func `a clock that is more than an hour off stays so`() throws {
    for ahead: Int64 in [-3700, 3700] {
      let coded = try CodedDevice([.device, .otp], otp: totpMethod)
      #expect(try coded.ask(otp: coded.otp(ahead: ahead)) == .otpRejected)
      coded.now += 30
      #expect(try coded.ask(otp: coded.otp(ahead: ahead)) == .otpRejected)
    }
  }

  @Test func `a clock that is brought back an hour makes no code before the high-water mark good`() throws {
    let coded = try CodedDevice([.device, .otp], otp: totpMethod)
    let used = try coded.otp(ahead: 0)
    #expect(try coded.ask(otp: used) == .accepted)
    // Those of the hour before were never used, and still are of no use.
    #expect(try coded.ask(otp: coded.otp(ahead: -1200)) == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(ahead: -1170)) == .otpRejected)
    #expect(try coded.ask(otp: used) == .otpRejected)
  }

  @Test func `no position is ever accepted twice, whatever is given in whatever order`() throws {
    for method in [hotpMethod, totpMethod] {
      var random = Steps(state: 7)
      var user = UserRecord(id: 1, lastAccepted: 1_000_000)
      user.accounts[.otp] = CodeAccount(method: method)
      var now: UInt64 = 1_000_000
      var accepted: Set<UInt64> = []
      var highest: UInt64 = 0
      for _ in 0..<50_000 {
        now = now + random.below(45) - random.below(40)
        let window = CodeWindow(user.accounts[.otp]!, of: user, now: now, limits: CodeLimits())
        guard !window.far.isEmpty else {
          now += 60
          continue
        }
        var position = window.far.lowerBound + random.below(UInt64(window.far.count))
        if let awaited = user.accounts[.otp]?.resynchronisingPosition, random.below(3) == 0 { position = awaited }
        if random.below(4) == 0, let near = window.near.first { position = near }
        guard window.far.contains(position) else { continue }
        // As another connection may have found it before.
        if random.below(5) == 0, position > 0 { position -= 1 }
        let match = window.near.contains(position) ? CodeMatch.near(position: position) : .far(position: position)
        let mark = user.accounts[.otp]!.nextPosition
        if user.useUp(.otp, match, at: now) {
          #expect(accepted.insert(position).inserted && position >= highest)
          highest = position
        }
        #expect(user.accounts[.otp]!.nextPosition >= mark)
      }
      #expect(accepted.count > 1000)
    }
  }

  @Test func `a code that two connections found at the same time counts once`() {
    for method in [hotpMethod, totpMethod] {
      var user = UserRecord(id: 1, lastAccepted: 1_000_000)
      user.accounts[.otp] = CodeAccount(method: method)
      let position: UInt64 = 1_000_000 / 30
      let given = [position, position, position - 1, position + 1]
      let counted = given.map { user.useUp(.otp, .near(position: $0), at: 1_000_000) }
      #expect(counted == [true, false, false, true])
    }
  }

  @Test(arguments: [(-1, 1), (0, 0), (1, 0), (29, 0), (30, -1), (31, -2)] as [(Int64, Int64)])
  func `a clock is followed only as far as the nearest second of the code's half minute`(
    seconds: Int64, offset: Int64
  ) {
    let position: UInt64 = 40_000_000
    var user = UserRecord(id: 1, lastAccepted: 0)
    user.accounts[.otp] = CodeAccount(method: totpMethod)
    let now = UInt64(Int64(position) * 30 + seconds)
    let isCounted = user.useUp(.otp, .near(position: position), at: now)
    #expect(isCounted && user.clockOffsetSeconds == offset && user.lastAccepted == now)
  }

  @Test func `a password's half minute and a seal's minute share one clock, and neither is good twice`() throws {
    var random = Steps(state: 11)
    var user = UserRecord(id: 1, lastAccepted: 1_790_000_000)
    user.accounts[.otp] = CodeAccount(method: totpMethod)
    user.accounts[.seal] = CodeAccount(method: timeSealMethod)
    var now: UInt64 = 1_790_000_000
    var accepted: [CodePurpose: Set<UInt64>] = [.otp: [], .seal: []]
    for round in 0..<20_000 {
      now += random.below(50)
      let drift = Int64(round) / 20
      let users = UInt64(Int64(now) + drift)
      for (purpose, step) in [(CodePurpose.otp, UInt64(30)), (.seal, 60)] where random.below(2) == 0 {
        let position = users / step
        let window = CodeWindow(user.accounts[purpose]!, of: user, now: now, limits: CodeLimits())
        guard window.near.contains(position) else { continue }
        if user.useUp(purpose, .near(position: position), at: now) {
          #expect(accepted[purpose]!.insert(position).inserted)
        }
      }
    }
    #expect(abs(user.clockOffsetSeconds - 1000) <= 60)
    #expect(accepted[.otp]!.count > 5000 && accepted[.seal]!.count > 3000)
  }
}

/// Numbers that repeat from run to run.
struct Steps {
  var state: UInt64

  mutating func below(_ bound: UInt64) -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return (state >> 33) % bound
  }
}
