import HoldfastCore
import TestSupport
import Testing

@testable import HoldfastFirmware

/// What a small device has less room for than a ledger on Linux.
@Suite struct FlashStoreLimitsTests {
  let firmware: TestFirmware
  let machine: TestMachine<TestStore>

  init() throws {
    firmware = try TestFirmware(issuerCount: 2)
    firmware.clock.seconds = nil
    machine = try TestMachine(firmware.open(), of: firmware)
  }

  private func counted(_ id: UInt8, expires: UInt64 = testTime + 1000) throws -> TestProver {
    try firmware.prover { ($0.tokenID, $0.maximumUses, $0.expires) = (TokenID(filledWith: id), 2, expires) }
  }

  @Test func `the uses of 64 tokens are counted; another token is busy, and those that are known go on`() throws {
    for id: UInt8 in 0..<64 { #expect(try machine.status(counted(id)) == .accepted) }
    #expect(try machine.status(counted(64)) == .busy)
    #expect(try machine.status(counted(0)) == .accepted)
    #expect(try machine.status(counted(0)) == .usesExhausted)
    #expect(try machine.status(firmware.prover()) == .accepted)
    #expect(machine.actuator.performed.count == 66)
  }

  @Test func `half of the places are for nonces, and a uses' place is left to the token`() throws {
    // A token has places for eight.
    let provers = try (0..<5).map { number in
      try firmware.prover { $0.tokenID = TokenID(filledWith: 0xf0 + UInt8(number)) }
    }
    for nonce: UInt8 in 0..<32 {
      #expect(try machine.compatibility(provers[Int(nonce) / 8], nonce: nonce) == .accepted)
    }
    #expect(try machine.compatibility(provers[4], nonce: 32) == .busy)
    #expect(try machine.compatibility(provers[3], nonce: 31) == .deviceMismatch)
    for id: UInt8 in 0..<32 { #expect(try machine.status(counted(id)) == .accepted) }
    #expect(try machine.status(counted(32)) == .busy)
  }

  @Test func `what has expired by the clock floor makes room, and not a second before`() throws {
    for id: UInt8 in 0..<64 {
      #expect(try machine.status(counted(id, expires: testTime + 100 + UInt64(id))) == .accepted)
    }
    let later = try firmware.prover(from: 1) { $0.issuedAt = testTime + 99 }
    #expect(try machine.status(later) == .accepted)
    #expect(try machine.status(counted(64)) == .busy)
    let atLast = try firmware.prover(from: 1) { ($0.issuedAt, $0.tokenID) = (testTime + 100, TokenID(filledWith: 9)) }
    #expect(try machine.status(atLast) == .accepted)
    #expect(try machine.status(counted(64)) == .accepted)
    #expect(try machine.status(counted(65)) == .busy)
    #expect(firmware.contents() == (try machine.withStore { try $0.contents() }))
  }

  @Test func `eight tokens are remembered, the oldest goes first`() throws {
    let provers = try (0..<9 as Range<UInt8>).map { id in try firmware.prover { $0.tokenID = TokenID(filledWith: id) } }
    for prover in provers { #expect(try machine.status(prover) == .accepted) }
    #expect(try machine.status(provers[0], flaws: .asReference) == .tokenUnknown)
    for prover in provers[1...] { #expect(try machine.status(prover, flaws: .asReference) == .accepted) }
    let other = try TestMachine(firmware.open(), of: firmware)
    #expect(try other.status(provers[8], flaws: .asReference) == .tokenUnknown)
  }

  @Test func `sixteen users fit; one more is refused by the device, and a known one can be replaced`() throws {
    try machine.withStore { (store: inout TestStore) throws in
      for index in 0..<16 {
        try store.add(BoundedText("user \(index)")!, otp: hotpMethod, seal: counterSealMethod, secret: usersSecret)
      }
    }
    for (user, isTaken) in [("one more", false), ("user 3", true)] {
      let code = try machine.withStore { (store: inout TestStore) throws in
        try store.issue(.activation, to: BoundedText(user)!, otp: hotpMethod, seed: 5)
      }
      var visitor = TestVisitor()
      let took = try visitor.use(code, for: .activation, challenge: machine.challenge()) { machine.respond($0) }
      #expect(took == isTaken, "\(user)")
    }
    #expect(try TestMachine(firmware.open(), of: firmware).status(firmware.prover()) == .accepted)
  }

  @Test func `a seventeenth verifying key is denied, and costs nobody else anything`() throws {
    let rounds = try (0..<17).map { _ in try TestFirmware() }
    var store = try firmware.open()
    for (index, other) in rounds.enumerated() {
      let keyID = try other.issuers[0].keyID()
      var isRecorded = true
      do {
        try store.record { (store: inout TestStore) throws(EncodingFault) in
          try store.draftGeneration(3, of: keyID)
        }
      } catch { isRecorded = false }
      #expect(isRecorded == (index < 16))
    }
    let isFailed = store.isFailed
    #expect(!isFailed)
    #expect(firmware.contents() == (try store.contents()))
  }

  @Test func `a store that failed answers nothing any more, until the device starts again`() throws {
    let machine = try TestMachine(firmware.open(wordCount: 3), of: firmware)
    #expect(try machine.round(firmware.prover()).status == .internal)
    #expect(throws: SessionFault.store) { try machine.challenge() }
    #expect(machine.actuator.performed.isEmpty)
    #expect(try TestMachine(firmware.open(), of: firmware).status(firmware.prover()) == .accepted)
  }
}
