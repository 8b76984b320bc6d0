import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

@Suite struct DeniedDeviceTests {
  private let refusal: [UInt8] = [0x83, 3, 17, 0xf6]

  @Test func `a denied device answers internal to everything, and never stops`() throws {
    let line = TestLine(clock: TestClock())
    var generator = SeededGenerator(4)
    line.then { $0.message([1, 2, 3]) }
    line.then { $0.bytes([0, 0]) }
    line.then { $0.quiet(milliseconds: 100_000) }
    line.then { $0.bytes((0..<10_000).map { _ in UInt8.random(in: 0...255, using: &generator) }, every: 1) }
    line.then { $0.quiet(milliseconds: 1500) }
    line.then { $0.message([UInt8](repeating: 7, count: 4096)) }
    var device = DeniedDevice(board: line, clock: line.clock)
    device.run()
    let messages = line.messages.map(\.bytes)
    #expect(messages.count > 50)
    #expect(messages.allSatisfy { $0 == refusal || $0.isEmpty })
    #expect(messages.last == refusal)
  }

  @Test func `without an identity, or a journal, a device does not start`() throws {
    let firmware = try TestFirmware()
    let image = firmware.flash.image
    let line = TestLine(clock: firmware.clock)
    func fault() -> FirmwareFault? {
      do throws(FirmwareFault) {
        _ = try firmware.start(line, CountingMachine())
        return nil
      } catch { return error }
    }
    firmware.flash.flip(bit: 20 * 8)
    #expect(fault() == .provision(.damaged))
    firmware.flash.image = image
    firmware.flash.flip(bit: (FlashLayout.slots.first + 40) * 8)
    #expect(fault() == .store(.damaged))
    firmware.flash.image = Array(repeating: 0xff, count: FlashLayout.byteCount)
    #expect(fault() == .provision(.blank))
    firmware.flash.image =
      Array(image[..<FlashLayout.slots.first])
      + [UInt8](
        repeating: 0xff, count: FlashLayout.byteCount - FlashLayout.slots.first)
    #expect(fault() == .store(.blank))
    #expect(line.sent.isEmpty)
  }

  @Test func `a device whose flash fails denies from then on, and says so`() throws {
    let firmware = try TestFirmware()
    let line = TestLine(clock: firmware.clock)
    let machine = CountingMachine()
    let prover = try firmware.prover()
    for _ in 0..<3 {
      line.then { line in
        let challenge = line.messages.last { (try? Challenge($0.bytes.span)) != nil }!
        line.message(try prover.answer(challenge.bytes, command: "unlock").message)
      }
    }
    line.then { $0.bytes([0, 0]) }
    // Enough for the start and the first round, not for the second one.
    try firmware.serve(line, machine, wordCount: 36)
    let messages = line.messages.map(\.bytes)
    let first = try #require(messages.firstIndex(of: refusal))
    #expect(machine.performed.count == (first - 1) / 2)
    #expect(messages[first...].allSatisfy { $0 == refusal || $0.isEmpty })
    #expect(messages.last == refusal)
    #expect(line.notices.contains(.sessionFault(.store)))
    #expect(machine.performed.count == 1)
  }
}
