import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// The verdicts that a prover believes, and those that it does not.
@Suite struct ProverSessionTests {
  let example = WorkedExample.shared

  private func prover(_ name: String = "cose") throws -> Prover {
    try Prover.example(name, remembered: name == "reference")
  }

  private func answered(_ name: String = "cose") throws -> Prover {
    var prover = try prover(name)
    _ = try prover.receive(hex(example.round(name)["m1"]!).span)
    return prover
  }

  @Test(arguments: [5, 25, 40])
  func `nothing is sent to another device`(index: Int) throws {
    var challenge = hex(example.round("cose")["m1"]!)
    challenge[index] ^= 1
    var prover = try prover()
    if (20..<38).contains(index) {
      _ = try prover.receive(challenge.span)
      #expect(prover.outgoing.count > 0)
    } else {
      #expect(throws: index < 20 ? ProverFault.anotherDevice : .anotherKey) { try prover.receive(challenge.span) }
      #expect(prover.outgoing.count == 0)
    }
  }

  @Test func `another version of the protocol gets no answer`() throws {
    var challenge = hex(example.round("cose")["m1"]!)
    challenge[2] = 2
    var prover = try prover()
    #expect(throws: ProverFault.malformed) { try prover.receive(challenge.span) }
    #expect(prover.outgoing.count == 0)
  }

  @Test func `a status that needs a seal and has none is an impostor's`() throws {
    for status in Status.allCases {
      var prover = try answered()
      let message: [UInt8] = [0x83, 0x03] + (status.rawValue < 24 ? [status.rawValue] : []) + [0xf6]
      if status.needsAuthentication {
        #expect(throws: ProverFault.impostor) { try prover.receive(message.span) }
      } else {
        guard case .done(let verdict) = try prover.receive(message.span) else {
          Issue.record("\(status)")
          continue
        }
        #expect(verdict.status == status)
        #expect(!verdict.isAuthenticated)
      }
    }
  }

  @Test func `every flipped bit of a sealed verdict is refused`() throws {
    let verdict = hex(example.round("cose")["m3"]!)
    for index in 3..<verdict.count {
      var prover = try answered()
      var changed = verdict
      changed[index] ^= 1
      #expect(throws: (any Error).self) { try prover.receive(changed.span) }
    }
    for status in 1...17 as ClosedRange<UInt8> {
      var prover = try answered()
      var changed = verdict
      changed[2] = status
      #expect(throws: ProverFault.impostor) { try prover.receive(changed.span) }
    }
  }

  @Test func `the verdict of another round does not open`() throws {
    var prover = try answered("cose")
    #expect(throws: ProverFault.impostor) { try prover.receive(hex(example.round("reference")["m3"]!).span) }
  }

  @Test func `the token is sent whole once a connection and no more`() throws {
    let unknown: [UInt8] = [0x83, 0x03, 0x04, 0xf6]
    var prover = try answered("reference")
    guard case .awaitChallenge = try prover.receive(unknown.span) else {
      Issue.record("the prover gave up")
      return
    }
    _ = try prover.receive(hex(example.round("cose")["m1"]!).span)
    #expect(prover.outgoing.count > 400)
    guard case .done(let verdict) = try prover.receive(unknown.span) else {
      Issue.record("the prover goes on")
      return
    }
    #expect(verdict.status == .tokenUnknown)
  }

  @Test func `a device without room says so before any challenge`() throws {
    var prover = try prover()
    guard case .done(let verdict) = try prover.receive(([0x83, 0x03, 0x0e, 0xf6] as [UInt8]).span) else {
      Issue.record("the prover goes on")
      return
    }
    #expect(verdict.status == .busy)
    #expect(!verdict.isAuthenticated)
  }

  @Test(
    arguments: [[0x83, 0x03, 0x00, 0xf6], [0x83, 0x03, 0x02, 0xf6], [0x83, 0x03, 0x0e, 0x41, 0x00]] as [[UInt8]])
  func `a verdict that needs a seal, or has one, is an impostor's before any challenge`(message: [UInt8]) throws {
    var prover = try prover()
    #expect(throws: ProverFault.impostor) { try prover.receive(message.span) }
    #expect(prover.outgoing.count == 0)
  }

  @Test func `a verdict of a compatibility round is not sealed, and proves nothing`() throws {
    let verdict = try ProverOutcome(compatibilityVerdict: ([0x83, 0x03, 0x00, 0xf6] as [UInt8]).span)
    #expect(verdict.status == .accepted && !verdict.isAuthenticated && !verdict.isRepetition)
    for bad in [[0x83, 0x03, 0x00, 0x41, 0x00], [0x83, 0x03, 0x00, 0x40], [0x83, 0x03, 0x18, 0x2a, 0xf6], [0x82]]
      as [[UInt8]]
    {
      #expect(throws: ProverFault.malformed) { try ProverOutcome(compatibilityVerdict: bad.span) }
    }
  }

  @Test func `a token has at most 3072 bytes and comes whole or not at all`() throws {
    _ = try Prover.with([UInt8](repeating: 1, count: 3072))
    #expect(throws: EncodingFault.tooLong) { _ = try Prover.with([UInt8](repeating: 1, count: 3073)) }
  }
}
