import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

@Suite struct EnduranceTests {
  @Test func `over thousands of rounds and many changes of slots nothing is lost, and the audit chain holds`() throws {
    let firmware = try TestFirmware(issuerCount: 2)
    firmware.clock.seconds = nil
    var machine = try TestMachine(firmware.open(), of: firmware)
    var generator = SeededGenerator(0xe4d)
    var (uses, generation, roundCount): ([UInt8: UInt64], UInt64, UInt64) = ([:], 1, 0)
    var (slotChanges, slot) = (0, FlashLayout.slots.first)
    let lasting = try firmware.prover { $0.expires = testTime + 9_000_000 }
    let counted = try (0..<20 as Range<UInt8>).map { id in
      try firmware.prover {
        ($0.tokenID, $0.maximumUses, $0.expires) = (TokenID(filledWith: id), 200, testTime + 9_000_000)
      }
    }
    for round in 0..<3000 {
      let id = UInt8.random(in: 0..<20, using: &generator)
      if round % 500 == 499 {
        generation += 1
        let newer = try firmware.prover(from: 1) { $0.generation = generation }
        #expect(try machine.status(newer) == .accepted)
      } else if round % 3 == 0 {
        #expect(try machine.status(lasting, "status") == .accepted)
      } else {
        let expected: Status = uses[id, default: 0] < 200 ? .accepted : .usesExhausted
        #expect(try machine.status(counted[Int(id)]) == expected)
        if expected == .accepted { uses[id, default: 0] += 1 }
      }
      roundCount += 1
      machine.withStore { $0.rest(recordsTotals: true, realClock: nil) }
      let now = machine.withStore { $0.journal.slot }
      if now != slot { (slot, slotChanges) = (now, slotChanges + 1) }
      guard round % 400 == 399 else { continue }
      let contents = try machine.withStore { try $0.contents() }
      #expect(firmware.contents() == contents)
      machine = try TestMachine(firmware.open(), of: firmware, bootCount: UInt64(round))
      _ = try machine.status(lasting)
      roundCount += 1
    }
    #expect(slotChanges >= 3, "\(slotChanges)")
    let (issuer, total) = (try firmware.issuers[1].keyID(), roundCount)
    try machine.withStore { (store: inout TestStore) throws in
      let (entries, isWhole) = try store.auditEntries()
      #expect(isWhole && entries.count >= 16)
      #expect(store.audit.count == total)
      #expect(try store.generationFloor(of: issuer) == generation)
      #expect(store.index.keptCount == uses.count)
    }
    for (id, count) in uses where count == 200 { #expect(try machine.status(counted[Int(id)]) == .usesExhausted) }
  }
}
