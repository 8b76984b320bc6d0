import TestSupport
import Testing

import HoldfastFirmware

@Suite struct SimulatedFlashTests {
  let memory = TestFlash()

  @Test func `programming turns ones into zeros, and never back`() throws {
    var flash = memory.powered()
    try flash.program(0x1234_5678, at: 8)
    #expect(memory.image[8..<12] == [0x78, 0x56, 0x34, 0x12])
    try flash.program(0x1004_0000, at: 8)
    #expect(throws: FlashFailure.self) { try flash.program(0x1004_0001, at: 8) }
    let word = flash.word(at: 8)
    #expect(word == 0x1004_0000)
  }

  @Test(arguments: [-4, 1, 2, 6, FlashLayout.byteCount - 3, FlashLayout.byteCount, .max, .min])
  func `a word outside the flash, or not at a multiple of 4, fails`(offset: Int) {
    var flash = memory.powered()
    #expect(throws: FlashFailure.self) { try flash.program(0, at: offset) }
    #expect(memory.image.allSatisfy { $0 == 0xff })
  }

  @Test func `the first and the last word of the flash are words`() throws {
    var flash = memory.powered()
    for offset in [0, FlashLayout.byteCount - 4] { try flash.program(0, at: offset) }
    #expect(memory.image.prefix(4) == [0, 0, 0, 0] && memory.image.suffix(4) == [0, 0, 0, 0])
    #expect(memory.image[4..<FlashLayout.byteCount - 4].allSatisfy { $0 == 0xff })
  }

  @Test(arguments: [-4096, 4, 2048, FlashLayout.byteCount, .max]) func `what is no page is not erased`(offset: Int) {
    var flash = memory.powered()
    #expect(throws: FlashFailure.self) { try flash.erasePage(at: offset) }
  }

  @Test func `erasing sets one page to ones, word by word`() throws {
    memory.image = Array(repeating: 0, count: FlashLayout.byteCount)
    var flash = memory.powered(wordCount: 1030)
    try flash.erasePage(at: 4096)
    #expect(memory.image[4096..<8192].allSatisfy { $0 == 0xff })
    #expect(memory.image[8192] == 0)
    #expect(throws: FlashFailure.self) { try flash.erasePage(at: 8192) }
    #expect(memory.image[8192..<8192 + 24].allSatisfy { $0 == 0xff })
    #expect(memory.image[8192 + 24] == 0)
    #expect(throws: FlashFailure.self) { try flash.program(0, at: 0) }
  }

  @Test func `a word that did not take is noticed`() throws {
    var flash = StuckFlash(memory: memory.powered())
    #expect(throws: FlashFailure.self) { try flash.programVerified(0, at: 0) }
  }
}

/// Takes every word, and keeps none.
private struct StuckFlash: ~Copyable, FlashMemory {
  let memory: SimulatedFlash

  var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { memory.bytes }
  }

  mutating func program(_ word: UInt32, at offset: Int) throws(FlashFailure) {}
  mutating func erasePage(at offset: Int) throws(FlashFailure) {}
}
