import TestSupport
import Testing

import HoldfastFirmware

/// The choice of the slot that is in force, by the heads of both.
@Suite struct SlotHeadTests {
  enum Slot: CaseIterable {
    case blank, begun, complete, newer, superseded, halfErased, spoiled
  }

  private func write(_ slot: Slot, at offset: Int, into flash: TestFlash) throws {
    var powered = flash.powered()
    switch slot {
    case .blank: return
    case .begun: try SlotHead.write(3, into: &powered, at: offset)
    case .complete, .newer, .superseded, .spoiled:
      try SlotHead.write(slot == .newer ? 9 : slot == .superseded ? 2 : 3, into: &powered, at: offset)
      try powered.program(slot == .spoiled ? 1 : 0, at: offset + SlotHead.completeOffset)
      if slot == .superseded { try powered.program(0, at: offset + SlotHead.supersededOffset) }
    case .halfErased: try powered.program(0, at: offset + SlotHead.supersededOffset)
    }
  }

  /// The slot in force: 0, 1, or nil where the device denies.
  private func expected(_ first: Slot, _ second: Slot) -> Int? {
    let current: [Slot] = [.complete, .newer]
    let harmless: [Slot] = [.blank, .begun, .superseded, .halfErased]
    switch (first, second) {
    case (.complete, .newer): return 1
    case (.newer, .complete): return 0
    default:
      if current.contains(first), harmless.contains(second) { return 0 }
      if harmless.contains(first), current.contains(second) { return 1 }
      return nil
    }
  }

  @Test func `exactly one slot is in force, or the device denies`() throws {
    for first in Slot.allCases {
      for second in Slot.allCases {
        let flash = TestFlash()
        try write(first, at: FlashLayout.slots.first, into: flash)
        try write(second, at: FlashLayout.slots.second, into: flash)
        let found: Int?
        do {
          let journal = try TestJournal(opening: flash.powered())
          found = journal.slot == FlashLayout.slots.first ? 0 : 1
        } catch {
          found = nil
          #expect(error == (first == .blank && second == .blank ? .blank : .damaged))
        }
        #expect(found == expected(first, second), "\(first), \(second)")
      }
    }
  }

  @Test func `a slot that was not superseded in time is at the next start`() throws {
    let flash = TestFlash()
    try write(.complete, at: FlashLayout.slots.first, into: flash)
    try write(.newer, at: FlashLayout.slots.second, into: flash)
    #expect(throws: StoreFault.flash) { _ = try TestJournal(opening: flash.powered(wordCount: 0)) }
    let journal = try TestJournal(opening: flash.powered())
    let head = SlotHead(journal.flash, at: FlashLayout.slots.first)
    #expect(head.state == .superseded)
  }
}
