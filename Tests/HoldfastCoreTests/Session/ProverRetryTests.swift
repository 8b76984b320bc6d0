import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// When a prover tries once more, and when it does not.
@Suite struct ProverRetryTests {
  let wrong = [UInt8](repeating: 0xee, count: 32)
  let unsealed: [UInt8] = [0x83, 0x03, 0x11, 0xf6]

  private func done(_ step: ProverStep) -> ProverOutcome? {
    guard case .done(let verdict) = step else { return nil }
    return verdict
  }

  /// A prover whose integrity does not match, after the first round with a command that may not need any.
  private func refused(_ device: ExampleDevice, remembered: Bool = false) throws -> Prover {
    var prover = try Prover.with(
      try ExampleToken().token(), command: "status", remembered: remembered, integrity: wrong)
    let step = try device.round(&prover).step
    #expect(done(step) == nil)
    return prover
  }

  @Test func `where every command needs integrity nothing is tried without`() throws {
    let device = try ExampleDevice()
    device.policy.commonFactors = [.integrity, .device]
    var prover = try Prover.with(try ExampleToken().token(), command: "status", integrity: wrong)
    #expect(done(try device.round(&prover).step)?.status == .integrityMismatch)
  }

  @Test func `the second try names the token by its reference`() throws {
    let device = try ExampleDevice()
    var prover = try refused(device)
    let answer = try device.answer(from: &prover)
    #expect(answer.count < 400)
    #expect(device.respond(answer).status == .accepted)
  }

  @Test func `a status without a seal does not hide the mismatch that was proved before`() throws {
    let device = try ExampleDevice()
    var prover = try refused(device)
    _ = try device.answer(from: &prover)
    let verdict = try #require(done(try prover.receive(unsealed.span)))
    #expect(verdict.status == .integrityMismatch)
    #expect(verdict.isAuthenticated)
    #expect(prover.verdictSoFar?.status == .integrityMismatch)
  }

  @Test func `a later sealed verdict stands for itself, unless it only misses the integrity that was not sent`() throws
  {
    let device = try ExampleDevice()
    var prover = try refused(device)
    device.policy.rules["status"] = nil
    #expect(done(try device.round(&prover).step)?.status == .commandRefused)
  }

  @Test func `a device that finds fault with integrity that was not sent ends it`() throws {
    let device = try ExampleDevice()
    var prover = try refused(device)
    let answer = try device.answer(from: &prover)
    #expect(device.respond(answer).status == .accepted)
    let verdict = try sealedMismatch(device, answer)
    #expect(done(try prover.receive(verdict.span))?.status == .integrityMismatch)
  }

  /// The verdict of a device that has the token's keys and answers integrityMismatch.
  private func sealedMismatch(_ device: ExampleDevice, _ answer: [UInt8]) throws -> [UInt8] {
    var cryptography = OpenSSLCryptography()
    let example = WorkedExample.shared
    // 85 02 58 length head: a head with a reference is short.
    let head = Array(answer[4..<4 + Int(answer[3])])
    let transcript = try Transcript(
      challenge: device.session.challenge.bytes, head: head.span, using: &cryptography)
    let keys = try SessionKeys(
      proofKey: secret(example.bytes("measurement.mpk")), device: secret(example.bytes("measurement.dm")),
      transcript: transcript, using: &cryptography)
    device.session.outgoing.removeAll()
    _ = device.session.seal(VerdictBody(), status: .integrityMismatch, keys: keys, transcript: transcript)
    return hex(device.outgoing)
  }

  @Test func `a prover takes a whole token of at most 3072 bytes, and no reference`() throws {
    for (count, encoding) in [(3073, .cose), (16, .reference)] as [(Int, TokenEncoding)] {
      #expect(throws: EncodingFault.tooLong) {
        let token = [UInt8](repeating: 1, count: count)
        let prover = try Prover(
          identity: try Prover.exampleIdentity(), request: Request(command: "unlock"), token: token.span,
          encoding: encoding, isRemembered: false, cryptography: OpenSSLCryptography(),
          random: RepeatingRandom([3]))
        _ = prover.outgoing.count
      }
    }
  }

  @Test func `a sealed verdict in place of M1 is an impostor's`() throws {
    var prover = try Prover.with(try ExampleToken().token())
    #expect(throws: ProverFault.impostor) { try prover.receive(([0x83, 0x03, 0x0e, 0x41, 0x00] as [UInt8]).span) }
  }
}
