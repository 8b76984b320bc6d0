import TestSupport
import Testing

import HoldfastFirmware

/// Damage never makes a journal forget: it denies, or holds what it held.
@Suite struct FlippedBitTests {
  private func regions(of flash: TestFlash) throws -> [Range<Int>] {
    let journal = try TestJournal(opening: flash.powered())
    let (first, second) = (FlashLayout.slots.first, FlashLayout.slots.second)
    return [first..<first + 96, second..<journal.end + 64, FlashLayout.byteCount - 16..<FlashLayout.byteCount]
  }

  @Test func `any one bit that flips in heads, log and the room behind it`() throws {
    let flash = try TestFlash.withJournal()
    let image = flash.image
    #expect(transactions(in: flash) == TestFlash.journalContents)
    var (denied, same) = (0, 0)
    for region in try regions(of: flash) {
      for bit in region.lowerBound * 8..<region.upperBound * 8 {
        flash.image = image
        flash.flip(bit: bit)
        let found = transactions(in: flash)
        if found == nil { denied += 1 } else { same += 1 }
        guard found == nil || found == TestFlash.journalContents else {
          Issue.record("bit \(bit) makes it \(String(describing: found))")
          return
        }
      }
    }
    // The superseded slot and spare words of the head matter to nobody.
    #expect(denied > 1500 && same > 500, "\(denied) denied, \(same) the same")
  }

  @Test func `each bit of the slot in force, but for spare words of its head, is looked at`() throws {
    let flash = try TestFlash.withJournal()
    let slot = FlashLayout.slots.second
    let end = try TestJournal(opening: flash.powered()).end
    let torn = slot + 32 + 12 + 108
    for bit in slot * 8..<(end + 16) * 8 {
      let isSpare = (slot + 20..<slot + 32).contains(bit / 8)
      // What the power cut short counts for nothing, but for its length and the place of its checksum.
      let isTorn = (torn + 4..<torn + 12).contains(bit / 8)
      flash.flip(bit: bit)
      #expect((transactions(in: flash) == nil) == !(isSpare || isTorn), "bit \(bit) of byte \(bit / 8 - slot)")
      flash.flip(bit: bit)
    }
  }

  @Test func `bits that flip at random`() throws {
    let flash = try TestFlash.withJournal()
    let image = flash.image
    let regions = try regions(of: flash)
    var generator = SeededGenerator(0x0f1a)
    for _ in 0..<5000 {
      flash.image = image
      for _ in 0..<Int.random(in: 2...16, using: &generator) {
        let region = regions[Int.random(in: 0..<regions.count, using: &generator)]
        flash.flip(bit: Int.random(in: region.lowerBound * 8..<region.upperBound * 8, using: &generator))
      }
      let found = transactions(in: flash)
      #expect(found == nil || found == TestFlash.journalContents)
    }
  }

  @Test func `whole words that are erased or programmed at random`() throws {
    let flash = try TestFlash.withJournal()
    let image = flash.image
    let regions = try regions(of: flash)
    var generator = SeededGenerator(0x3a7e)
    for _ in 0..<3000 {
      flash.image = image
      let region = regions[Int.random(in: 0..<regions.count, using: &generator)]
      let word = Int.random(in: region.lowerBound / 4..<region.upperBound / 4, using: &generator)
      let byte: UInt8 = Bool.random(using: &generator) ? 0 : 0xff
      for offset in 0..<4 { flash[word * 4 + offset] = byte }
      guard let found = transactions(in: flash) else { continue }
      // An erased checksum, although only whole pages can be erased, looks like a power cut.
      let isChecksum = found.count == TestFlash.journalContents.count - 1 && byte == 0xff
      #expect(found == TestFlash.journalContents || isChecksum)
    }
  }
}
