import Testing

import HoldfastCore

/// Which request numbers a device still accepts, and what it answers to the others.
@Suite struct RequestNumberTests {
  private let digest = FixedBytes<16>([UInt8](repeating: 1, count: 16).span)!
  private let otherDigest = FixedBytes<16>([UInt8](repeating: 2, count: 16).span)!

  /// The record once these numbers were accepted, each of which must have been acceptable.
  private func record(_ numbers: UInt64...) throws -> RequestRecord {
    var record = RequestRecord(first: try #require(numbers.first), digest: digest, expires: 9000)
    for number in numbers.dropFirst() {
      #expect(!record.covers(number, clockFloor: 0))
      record = record.accepting(number, digest: digest, expires: 9000)
    }
    return record
  }

  @Test func `the window covers the 64 numbers below the highest, and everything below the window is refused`() throws {
    let record = try record(1000)
    #expect(record.covers(1000, clockFloor: 0))
    for number in UInt64(936)...999 { #expect(!record.covers(number, clockFloor: 0)) }
    for number in [935, 934, 1, 0] as [UInt64] { #expect(record.covers(number, clockFloor: 0)) }
    #expect(!record.covers(1001, clockFloor: 0))
  }

  @Test func `numbers within the window are accepted once each, in any order, and leave the highest as it is`() throws {
    let record = try record(1000, 936, 999, 950)
    #expect(record.highest == 1000)
    for number in [936, 950, 999, 1000] as [UInt64] { #expect(record.covers(number, clockFloor: 0)) }
    for number in [937, 949, 951, 998] as [UInt64] { #expect(!record.covers(number, clockFloor: 0)) }
  }

  @Test(arguments: [1, 2, 63, 64, 65, 66, 127, 128, 129, 1 << 40] as [UInt64])
  func `a jump moves the window, whatever its length`(jump: UInt64) throws {
    let before = try record(1000, 999, 940)
    let after = before.accepting(1000 + jump, digest: digest, expires: 9000)
    for number in UInt64(900)..<1000 + min(jump, 200) {
      let isAccepted = [940, 999, 1000].contains(number)
      let isBelow = number + 64 < 1000 + jump
      #expect(after.covers(number, clockFloor: 0) == (isAccepted || isBelow), "\(number)")
    }
    #expect(after.covers(1000 + jump, clockFloor: 0))
    #expect(!after.covers(1001 + jump, clockFloor: 0))
  }

  @Test func `0 and 2^53 - 1 are numbers like any other`() throws {
    let lowest = try record(0)
    #expect(lowest.covers(0, clockFloor: 0))
    #expect(!lowest.covers(1, clockFloor: 0))
    let highest = lowest.accepting(maximumInteger, digest: digest, expires: 9000)
    #expect(highest.covers(maximumInteger, clockFloor: 0))
    #expect(highest.covers(0, clockFloor: 0))
    #expect(!highest.covers(maximumInteger - 64, clockFloor: 0))
    #expect(highest.covers(maximumInteger - 65, clockFloor: 0))
    #expect(try record(64).covers(0, clockFloor: 0) == false)
    #expect(try record(65).covers(0, clockFloor: 0))
  }

  @Test func `a number against a plain list of what was accepted gives the same, for a hundred thousand numbers`()
    throws
  {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<100 {
      var accepted: Set<UInt64> = [500]
      var record = RequestRecord(first: 500, digest: digest, expires: 9000)
      for _ in 0..<1000 {
        let highest = record.highest
        let number = UInt64.random(in: highest - min(highest, 80)...highest + 20, using: &generator)
        let isRefused = accepted.contains(number) || number + 64 < highest
        #expect(record.covers(number, clockFloor: 0) == isRefused)
        guard !isRefused else { continue }
        accepted.insert(number)
        record = record.accepting(number, digest: digest, expires: 9000)
        #expect(record.highest == accepted.max())
      }
    }
  }

  @Test func `the outcome belongs to the highest number only`() throws {
    var record = try record(10)
    record.outcome = .accepted
    #expect(record.accepting(9, digest: otherDigest, expires: 9000).outcome == .accepted)
    #expect(record.accepting(9, digest: otherDigest, expires: 9000).digest == digest)
    #expect(record.accepting(11, digest: otherDigest, expires: 9000).outcome == nil)
    #expect(record.accepting(11, digest: otherDigest, expires: 9000).digest == otherDigest)
  }

  @Test func `a record counts until the clock floor reaches the latest exp of its token`() throws {
    let record = try record(10).accepting(11, digest: digest, expires: 9500)
    #expect(record.expires == 9500)
    #expect(record.accepting(9, digest: digest, expires: 9100).expires == 9500)
    #expect(record.covers(11, clockFloor: 9499))
    #expect(!record.covers(11, clockFloor: 9500))
    let outdated = RoundMaker.numbered(7, digest).with {
      $0.ledger.request = RequestRecord(highest: 7, window: 1, digest: otherDigest, expires: 1500, outcome: .accepted)
      $0.ledger.hasRequestRoom = false
    }
    #expect(outdated.status == .accepted)
    #expect(
      outdated.decision.request == RequestRecord(highest: 7, window: 0, digest: digest, expires: 9000, outcome: nil))
  }

  // MARK: What is answered

  /// A round that repeats number 7, of which the ledger knows this.
  private func repetition(
    of number: UInt64 = 7, outcome: Status?, _ change: @escaping (inout RoundMaker.Facts) -> Void = { _ in }
  ) -> RoundMaker {
    let record = RequestRecord(highest: 7, window: 1, digest: digest, expires: 9000, outcome: outcome)
    return RoundMaker.numbered(number, digest).with { $0.ledger.request = record }.with(change)
  }

  @Test func `a first number is recorded with the round, and so is a higher one`() {
    let first = RoundMaker.numbered(7, digest).decision
    #expect(first.status == .accepted)
    #expect(first.request == RequestRecord(highest: 7, window: 0, digest: digest, expires: 9000, outcome: nil))
    #expect(!first.isRepetition)
    let next = repetition(of: 9, outcome: .accepted).decision
    #expect(next.request == RequestRecord(highest: 9, window: 0b110, digest: digest, expires: 9000, outcome: nil))
    #expect(RoundMaker().decision.request == nil)
  }

  @Test func `a repetition is answered with the outcome, and nothing is to be written`() {
    for outcome in [Status.accepted, .internal] {
      let decision = repetition(outcome: outcome) {
        $0.round.maximumUses = 5
        $0.round.issuedAt = 1999
      }.decision
      #expect(decision.status == outcome)
      #expect(decision.isRepetition)
      #expect(decision.notice.highestRequestNumber == 7)
      #expect(decision.uses == nil)
      #expect(decision.request == nil)
      #expect(decision.generationFloor == nil)
      #expect(decision.clockFloor == 1500)
    }
  }

  @Test func `what is not known is said to be internal, and what is under way busy`() {
    #expect(repetition(outcome: nil).status == .internal)
    #expect(repetition(outcome: nil) { $0.ledger.isActing = true }.status == .busy)
    #expect(repetition(of: 6, outcome: .accepted).status == .internal)
    #expect(repetition(of: 6, outcome: .accepted) { $0.ledger.isActing = true }.status == .busy)
    #expect(repetition(of: 6, outcome: .accepted).decision.notice.highestRequestNumber == 7)
  }

  @Test func `the highest number with another command is refused, whether or not the outcome is known`() {
    for outcome in [Status.accepted, .internal, nil] {
      let decision = repetition(outcome: outcome) { $0.round.requestDigest = otherDigest }.decision
      #expect(decision.status == .commandRefused)
      #expect(decision.isRepetition)
    }
  }

  @Test func `the number is looked at after the version and before the uses`() {
    let exhausted = repetition(outcome: .accepted) {
      $0.round.maximumUses = 1
      $0.ledger.uses = UseRecord(count: 1, expires: 9000)
      $0.round.integrity = .wrong
      $0.round.isCommandInToken = false
      $0.round.factors = [.integrity, .device, .otp]
    }
    #expect(exhausted.status == .accepted)
    #expect(exhausted.with { $0.round.requestNumber = 8 }.status == .usesExhausted)
    let old = exhausted.with { $0.round.limits.minimumVersion = AppVersion(major: 2, minor: 0, patch: 0) }
    #expect(old.status == .versionTooOld)
    #expect(!old.decision.isRepetition)
    #expect(old.with { $0.round.expires = 2000 }.status == .tokenExpired)
    #expect(old.with { $0.round.generation = 2 }.status == .tokenRevoked)
  }

  @Test func `only a round that is accepted records its number`() {
    for change in [
      { $0.round.integrity = .wrong }, { $0.round.isCommandInToken = false }, { $0.round.factors = .all },
      { $0.round.expires = 2000 },
      { ($0.round.maximumUses, $0.ledger.uses) = (1, UseRecord(count: 1, expires: 9000)) },
      { $0.ledger.isIssuerTrusted = false },
    ] as [(inout RoundMaker.Facts) -> Void] {
      let decision = RoundMaker.numbered(7).with(change).decision
      #expect(decision.status != .accepted)
      #expect(decision.request == nil)
    }
  }

  @Test
  func `without room for its number a round is busy before anything is recorded, and one without a number is not`() {
    let full = RoundMaker.numbered(7).with { ($0.round.maximumUses, $0.ledger.hasRequestRoom) = (4, false) }
    #expect(full.status == .busy)
    #expect(!full.decision.isRepetition)
    #expect(full.decision.uses == nil)
    #expect(full.decision.request == nil)
    #expect(full.with { $0.round.requestNumber = nil }.status == .accepted)
  }
}
