import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

@Suite struct SettleTests {
  private func round(generation: UInt64) -> AppraisalInput {
    var round = AppraisalInput.accepted()
    (round.generation, round.maximumUses, round.realClock) = (generation, 3, nil)
    return round
  }

  @Test func `floors never go back, whatever the verdict says`() throws {
    let device = try TestDevice()
    func settle(clockFloor: UInt64, generationFloor: UInt64) throws -> (clockFloor: UInt64, generationFloor: UInt64) {
      var seen: (UInt64, UInt64)?
      var decision = Decision()
      try device.ledger.record(round(generation: generationFloor), &decision) { _, snapshot, decision in
        seen = (snapshot.clockFloor, snapshot.generationFloor)
        decision = Decision(status: .accepted, clockFloor: clockFloor, generationFloor: generationFloor)
      }
      return try #require(seen)
    }
    _ = try settle(clockFloor: testTime + 8, generationFloor: 8)
    _ = try settle(clockFloor: testTime + 2, generationFloor: 2)
    let last = try settle(clockFloor: 0, generationFloor: 0)
    #expect(last.clockFloor == testTime + 8)
    #expect(last.generationFloor == 8)
  }

  @Test func `an issuer that was removed after its token was looked at is not believed`() throws {
    let device = try TestDevice()
    let before = try device.ledger.summary()
    var decision = Decision()
    try device.ledger.record(round(generation: 9), &decision) { $2.decide($0, against: $1) }
    #expect((decision.status, decision.clockFloor) == (.tokenInvalid, before.clockFloor))
    #expect((decision.generationFloor, decision.user) == (nil, nil))
    #expect(try device.ledger.summary() == before)
  }

  @Test func `a verdict that counts nothing leaves nothing but a count`() throws {
    let device = try TestDevice()
    let before = try device.ledger.summary()
    var decision = Decision()
    try device.ledger.record(round(generation: 1), &decision) { _, snapshot, decision in
      decision = Decision(status: .commandRefused, clockFloor: snapshot.clockFloor)
    }
    #expect(try device.ledger.summary() == before)
    let expected = round(generation: 1)
    let counted = DeniedRounds(
      status: .commandRefused, verifyingKey: expected.verifyingKey, tokenID: expected.tokenID, count: 1)
    #expect(device.ledger.denied.take(at: 0, isForced: true) == [counted])
  }
}
