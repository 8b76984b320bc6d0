import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

/// A log in which something is left out is damage: what was used up would be good again.
@Suite struct MissingTransactionTests {
  @Test func `a transaction whose checksum reads as erased is missed by those behind it`() throws {
    let firmware = try TestFirmware()
    var store = try firmware.open()
    for _ in 0..<4 { _ = try store.start(realClock: nil) }
    var ends: [Int] = []
    var cursor = store.journal.cursor
    while try cursor.next(in: store.journal.flash) != nil { ends.append(cursor.position) }
    #expect(ends.count == 5)
    let image = firmware.flash.image
    // The first one has no entry in the audit log; without the last one the power seems to have failed.
    for (number, end) in ends.enumerated().dropFirst() {
      firmware.flash.image = image
      for offset in end - 4..<end { firmware.flash[offset] = 0xff }
      #expect((firmware.contents() == nil) == (number < 4), "transaction \(number)")
    }
  }

  @Test(arguments: [
    // A state with an element too many, an unknown kind, an outcome whose status is in the padding, places beyond the last, an
    // outcome that no request has, and secrets of users and codes that are not there.
    "8601000000000000", "821100", "830d00", "830d184000", "830d0001",
    "880c50" + String(repeating: "00", count: 16) + "1840f60000480000000000000000"
      + "50" + String(repeating: "00", count: 16),
    "8408010141aa", "820901", "820b01", "82f400",
  ])
  func `an item that no device writes is damage`(text: String) throws {
    let firmware = try TestFirmware()
    var store = try firmware.open()
    let item = hex(text)
    var fault: DeviceFault?
    do throws(DeviceFault) { try store.append(item.span) } catch { fault = error }
    #expect(fault == .store)
    #expect(firmware.contents() == nil)
  }

  @Test func `a complete slot that holds nothing is damage`() throws {
    let firmware = try TestFirmware()
    let log = FlashLayout.slots.first + SlotHead.byteCount..<FlashLayout.slots.second
    for offset in log { firmware.flash[offset] = 0xff }
    #expect(throws: StoreFault.damaged) { _ = try firmware.open() }
  }
}
