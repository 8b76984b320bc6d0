import TestSupport
import Testing

import HoldfastFirmware

@Suite struct JournalTests {
  let flash = TestFlash()

  private func create() throws -> TestJournal {
    var journal = try TestJournal(creatingIn: flash.powered())
    try journal.finishSlot()
    return journal
  }

  @Test func `erased flash holds no journal`() {
    #expect(throws: StoreFault.blank) { _ = try TestJournal(opening: flash.powered()) }
  }

  @Test func `what was appended is there after a start, in its order`() throws {
    var journal = try create()
    let written: [[UInt8]] = [[], [1], [1, 2, 3, 4], [0xff, 0xff, 0xff, 0xff], (0..<255).map { $0 }]
    for transaction in written { try journal.append(transaction) }
    #expect(transactions(in: flash) == written)
  }

  /// A device that was updated must read the journal that it wrote before.
  @Test func `the bytes of a journal stay as they are`() throws {
    var journal = try create()
    try journal.append([1, 2, 3])
    let slot = FlashLayout.slots.first
    // The words "HfJ1", the sequence and their CRC-32; complete, not superseded; none, none, none; a head of the length and its
    // complement, the bytes, and the CRC-32 of the sequence and both, as zlib computes them.
    #expect(
      hex(Array(flash.image[slot..<slot + 44]))
        == "48664a3101000000b7a002fd00000000ffffffff" + String(repeating: "f", count: 24) + "0300fcff01020300c573de56")
  }

  @Test func `a transaction says where its bytes are`() throws {
    var journal = try create()
    try journal.append([1, 2, 3, 4, 5])
    let range = try journal.append([6, 7, 8])
    #expect(Array(flash.image[range]) == [6, 7, 8])
  }

  @Test func `a transaction that the power cut short never happened, and the next one goes behind it`() throws {
    var journal = try create()
    try journal.append([1, 2, 3])
    let before = flash.image
    for wordCount in 0..<4 {
      flash.image = before
      var cut = try TestJournal(opening: flash.powered(wordCount: wordCount))
      #expect(throws: StoreFault.flash) { try cut.append([4, 5, 6, 7, 8]) }
      #expect(transactions(in: flash) == [[1, 2, 3]])
      var next = try TestJournal(opening: flash.powered())
      try next.append([9])
      #expect(transactions(in: flash) == [[1, 2, 3], [9]])
    }
  }

  @Test func `many cuts in a row leave what was whole`() throws {
    _ = try create()
    var written: [[UInt8]] = []
    for round in 0..<200 {
      var journal = try TestJournal(opening: flash.powered(wordCount: round % 5))
      let transaction = [UInt8(round), 2, 3, 4, 5]
      do { try journal.append(transaction) } catch { continue }
      written.append(transaction)
    }
    #expect(written.count == 40)
    #expect(transactions(in: flash) == written)
  }

  @Test func `a slot takes no more than fits, and is then whole`() throws {
    var journal = try create()
    let longest = [UInt8](repeating: 7, count: TestJournal.longestTransaction)
    #expect(throws: StoreFault.full) { try journal.append(longest + [7]) }
    var written: [[UInt8]] = []
    while journal.room >= longest.count {
      try journal.append(longest)
      written.append(longest)
    }
    let rest = [UInt8](repeating: 8, count: journal.room)
    #expect(throws: StoreFault.full) { try journal.append(rest + [8]) }
    try journal.append(rest)
    let (room, end) = (journal.room, journal.end)
    #expect(room < 0)
    #expect(end <= FlashLayout.slots.first + FlashLayout.slotByteCount)
    #expect(throws: StoreFault.full) { try journal.append([]) }
    #expect(transactions(in: flash) == written + [rest])
  }

  @Test(arguments: [0, 4, 8, 12]) func `any few bytes at the end of a slot are no transaction`(byteCount: Int) throws {
    var journal = try create()
    while journal.room >= 1024 { try journal.append([UInt8](repeating: 1, count: 1024)) }
    try journal.append([UInt8](repeating: 2, count: journal.room - byteCount))
    let count = try transactions(of: journal).count
    #expect(transactions(in: flash)?.count == count)
  }

  @Test func `a transaction without bytes fits into the last eight bytes of a slot`() throws {
    var journal = try create()
    while journal.room >= 1024 { try journal.append([UInt8](repeating: 1, count: 1024)) }
    try journal.append([UInt8](repeating: 2, count: journal.room - 8))
    let (count, room) = (try transactions(of: journal).count, journal.room)
    #expect(room == 0)
    try journal.append([])
    #expect(transactions(in: flash)?.count == count + 1)
  }

  @Test func `the other slot is in force once it is finished, and not before`() throws {
    var journal = try create()
    try journal.append([1])
    try journal.append([2])
    let item = try journal.append([3, 4, 5])
    try journal.beginSlot()
    try journal.append([6])
    try journal.append(copyOf: item)
    #expect(transactions(in: flash) == [[1], [2], [3, 4, 5]])
    try journal.finishSlot()
    let states = [FlashLayout.slots.first, FlashLayout.slots.second].map { SlotHead(journal.flash, at: $0).state }
    #expect(states == [.superseded, .current])
    try journal.append([7])
    #expect(transactions(in: flash) == [[6], [3, 4, 5], [7]])
  }

  @Test func `a slot is erased before it is used if as little as its last byte is not blank`() throws {
    let last = FlashLayout.slots.first + FlashLayout.slotByteCount - 1
    flash[last] = 0
    _ = try create()
    #expect(flash[last] == 0xff)
  }

  @Test func `a transaction of one slot does not count in another`() throws {
    var journal = try create()
    let range = try journal.append([1, 2, 3, 4])
    try journal.beginSlot()
    try journal.finishSlot()
    // As it stands in the first slot, head and checksum too.
    let old = Array(flash.image[range.lowerBound - 4..<range.upperBound + 4])
    flash.image.replaceSubrange(journal.end..<journal.end + old.count, with: old)
    #expect(throws: StoreFault.damaged) { _ = try TestJournal(opening: flash.powered()) }
  }

  @Test func `slots take turns for ever`() throws {
    var journal = try create()
    for round: UInt8 in 0..<20 {
      try journal.append([round])
      try journal.beginSlot()
      try journal.append([round, round])
      try journal.finishSlot()
      #expect(transactions(in: flash) == [[round, round]])
    }
  }

  @Test func `the power may fail at any word of a change of slots, and again at the start that follows`() throws {
    var journal = try create()
    try journal.append([1, 2, 3])
    try journal.beginSlot()
    try journal.append([4])
    try journal.finishSlot()
    try journal.append([5])
    let before = flash.image
    var wordCount = 0
    while true {
      flash.image = before
      var cut = try TestJournal(opening: flash.powered(wordCount: wordCount))
      let isDone: Bool
      do {
        try cut.beginSlot()
        try cut.append([6, 6])
        try cut.finishSlot()
        isDone = true
      } catch { isDone = false }
      let found = transactions(in: TestFlash(flash.image))
      #expect(found == (isDone ? [[6, 6]] : [[4], [5]]) || (!isDone && found == [[6, 6]]), "\(wordCount)")
      // What is erased is the same all the way: its edges stand for it.
      if wordCount % 1024 < 2 || wordCount > FlashLayout.slotByteCount / 4 {
        try checkChangeAgain(after: flash.image, holding: try #require(found))
      }
      if isDone { break }
      wordCount += 1
    }
    #expect(wordCount > FlashLayout.slotByteCount / 4)
  }

  /// Cuts the power in the change of slots that follows such a cut, at a few places.
  private func checkChangeAgain(after image: [UInt8], holding found: [[UInt8]]) throws {
    for wordCount in [0, 1, 2, 3, 4, 5, 6, 9, 40, 1024, 14 * 1024, 14 * 1024 + 4, 14 * 1024 + 7] {
      let flash = TestFlash(image)
      do {
        var journal = try TestJournal(opening: flash.powered(wordCount: wordCount))
        try journal.beginSlot()
        try journal.append([7, 7])
        try journal.finishSlot()
      } catch {}
      let again = transactions(in: flash)
      #expect(again == found || again == [[7, 7]], "\(wordCount)")
    }
  }
}
