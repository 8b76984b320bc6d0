import HoldfastCore
import TestSupport
import Testing

import HoldfastFirmware

/// Rounds that are denied and change nothing write nothing into flash until they are counted, once a minute.
@Suite struct DeniedCountsTests {
  @Test func `denied rounds take no flash until the counts are written, tokens first`() throws {
    let firmware = try TestFirmware()
    let machine = try TestMachine(firmware.open(), of: firmware)
    let before = machine.withStore { $0.journal.end }
    let refused = try (0..<10).map { number in
      try firmware.prover { ($0.tokenID, $0.commands) = (TokenID(filledWith: UInt8(number)), []) }
    }
    for round in 0..<5 {
      for prover in refused.prefix(round == 0 ? 10 : 3) { #expect(try machine.status(prover) == .commandRefused) }
    }
    #expect(try machine.status(refused[9], flaws: .wrongIntegrity) == .integrityMismatch)
    #expect(machine.withStore { $0.journal.end } == before)
    machine.withStore { $0.rest(recordsTotals: false, realClock: nil) }
    #expect(machine.withStore { $0.journal.end } == before)
    machine.withStore { $0.rest(recordsTotals: true, realClock: nil) }
    let counts = try machine.withStore { try $0.auditEntries().entries }.compactMap { entry -> DeniedRounds? in
      if case .denied(let rounds) = entry.event { rounds } else { nil }
    }
    let keyID = try firmware.issuers[0].keyID()
    let tokens = (0..<2).map { number in
      DeniedRounds(
        status: .commandRefused, verifyingKey: keyID, tokenID: TokenID(filledWith: UInt8(number)), count: 5)
    }
    #expect(
      counts == tokens + [
        DeniedRounds(status: .integrityMismatch, verifyingKey: nil, tokenID: nil, count: 1),
        DeniedRounds(status: .commandRefused, verifyingKey: nil, tokenID: nil, count: 12),
      ])
    let after = machine.withStore { $0.journal.end }
    machine.withStore { $0.rest(recordsTotals: true, realClock: nil) }
    #expect(machine.withStore { $0.journal.end } == after)
  }

  @Test func `one token keeps eight nonces, and others still have room`() throws {
    let firmware = try TestFirmware()
    let machine = try TestMachine(firmware.open(), of: firmware)
    let refused = try firmware.prover { ($0.tokenID, $0.commands) = (TokenID(filledWith: 1), []) }
    for nonce in 1...8 as ClosedRange<UInt8> {
      #expect(try machine.compatibility(refused, nonce: nonce) == .commandRefused)
    }
    let before = machine.withStore { $0.journal.end }
    for nonce in 9...20 as ClosedRange<UInt8> {
      #expect(try machine.compatibility(refused, nonce: nonce) == .busy)
    }
    #expect(try machine.compatibility(refused, nonce: 8) == .deviceMismatch)
    #expect(machine.withStore { $0.journal.end } == before)
    let other = try firmware.prover { $0.tokenID = TokenID(filledWith: 2) }
    #expect(try machine.compatibility(other, nonce: 9) == .accepted)
    // Two tokens whose ids begin alike are two.
    var similar = TokenID(filledWith: 1)
    similar[15] = 9
    let alike = try firmware.prover { $0.tokenID = similar }
    #expect(try machine.compatibility(alike, nonce: 9) == .accepted)
  }
}
