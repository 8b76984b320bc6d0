import TestSupport
import Testing

import HoldfastFirmware

typealias TestJournal = Journal<SimulatedFlash>

/// The transactions of the slot in force.
func transactions(of journal: borrowing TestJournal) throws -> [[UInt8]] {
  var cursor = journal.cursor
  var found: [[UInt8]] = []
  while let range = try cursor.next(in: journal.flash) {
    let bytes = journal.bytes
    found.append(Array(bytes.extracting(range)))
  }
  return found
}

/// The contents that a device finds when it starts with this flash; nil if it denies everything.
func transactions(in flash: TestFlash) -> [[UInt8]]? {
  do { return try transactions(of: TestJournal(opening: flash.powered())) } catch { return nil }
}

extension TestFlash {
  /// A journal with content, after a compaction and a power cut: superseded in the first slot, current in the second.
  static func withJournal() throws -> TestFlash {
    let flash = TestFlash()
    var journal = try TestJournal(creatingIn: flash.powered())
    try journal.append([1, 2, 3])
    try journal.finishSlot()
    try journal.append([4, 5, 6, 7, 8])
    try journal.beginSlot()
    try journal.append([9])
    try journal.append((0..<100).map { $0 })
    try journal.finishSlot()
    var torn = try TestJournal(opening: flash.powered(wordCount: 3))
    #expect(throws: StoreFault.flash) { try torn.append([0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x11, 0x22]) }
    var again = try TestJournal(opening: flash.powered())
    try again.append([10, 11])
    return flash
  }

  /// The contents of ``withJournal()``.
  static let journalContents: [[UInt8]] = [[9], (0..<100).map { $0 }, [10, 11]]
}

extension Journal where Flash: ~Copyable {
  @discardableResult
  mutating func append(_ bytes: [UInt8]) throws(StoreFault) -> Range<Int> { try append(bytes.span) }
}
