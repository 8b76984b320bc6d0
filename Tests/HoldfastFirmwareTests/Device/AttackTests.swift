import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

/// The attacks of somebody at the line, or with the flash in hand.
@Suite struct AttackTests {
  let firmware: TestFirmware

  init() throws {
    firmware = try TestFirmware(issuerCount: 2)
  }

  private func machine(bootCount: UInt64 = 1) throws -> TestMachine<TestStore> {
    var store = try firmware.open()
    return try TestMachine(store, of: firmware, bootCount: try store.start(realClock: nil))
  }

  @Test func `an answer counts for one challenge, at one start, of one device`() throws {
    let (prover, machine) = (try firmware.prover(), try machine())
    let answer = try prover.answer(try machine.challenge(), command: "unlock")
    #expect(try prover.open(machine.respond(answer.message), after: answer).status == .accepted)
    #expect(try prover.open(machine.respond(answer.message), after: answer).status == .challengeExpired)
    _ = try machine.challenge()
    #expect(try prover.open(machine.respond(answer.message), after: answer).status == .deviceMismatch)
    let next = try self.machine()
    _ = try next.challenge()
    #expect(try prover.open(next.respond(answer.message), after: answer).status == .deviceMismatch)
    #expect(machine.actuator.performed.count == 1 && next.actuator.performed.isEmpty)
  }

  @Test func `challenges never repeat, though the power fails again and again and the random source repeats`() throws {
    var seen: Set<[UInt8]> = []
    for _ in 0..<50 {
      let machine = try machine()
      for _ in 0..<4 { seen.insert(try machine.challenge()) }
    }
    #expect(seen.count == 200)
  }

  @Test func `a nonce is used up, whenever the power fails after the answer`() throws {
    let prover = try firmware.prover()
    let message = try prover.compatibilityAnswer(nonce: Array(repeating: 5, count: 16), command: "unlock")
    let first = try machine()
    _ = try first.challenge()
    #expect(try VerdictMessage(first.respond(message).span).status == .accepted)
    for _ in 0..<3 {
      let next = try machine()
      _ = try next.challenge()
      #expect(try VerdictMessage(next.respond(message).span).status == .deviceMismatch)
      #expect(next.actuator.performed.isEmpty)
    }
  }

  @Test func `an older image of the superseded slot brings nothing back, once the next one is complete`() throws {
    let slots = FlashLayout.slots
    let firstSlot = slots.first..<slots.first + FlashLayout.slotByteCount
    let prover = try firmware.prover { $0.maximumUses = 1 }
    let before = firmware.flash.image
    let machine = try machine()
    #expect(try machine.status(prover) == .accepted)
    try machine.withStore { (store: inout TestStore) throws in try store.compact() }
    // As it was before the token was used up, current and not superseded.
    firmware.flash.image.replaceSubrange(firstSlot, with: before[firstSlot])
    #expect(try self.machine().status(prover) == .usesExhausted)
  }

  @Test func `an older image of the slot in force is not told apart: who writes flash can roll back`() throws {
    let prover = try firmware.prover { $0.maximumUses = 1 }
    _ = try machine()
    let before = firmware.flash.image
    #expect(try machine().status(prover) == .accepted)
    firmware.flash.image = before
    // Only the head of the audit chain, noted elsewhere, tells.
    #expect(try machine().status(prover) == .accepted)
  }

  @Test func `a journal of another start of numbering is not mixed in`() throws {
    let machine = try machine()
    try machine.withStore { (store: inout TestStore) throws in try store.compact() }
    let image = firmware.flash.image
    let (first, second) = (FlashLayout.slots.first, FlashLayout.slots.second)
    // The whole log of one slot behind the head of the other.
    let log = Array(image[first + 32..<first + 400])
    firmware.flash.image.replaceSubrange(second + 32..<second + 400, with: log)
    #expect(firmware.contents() == nil)
  }
}
