import TestSupport
import Testing

import HoldfastCore

/// Who is asked for codes, and which status comes first.
@Suite struct CodeStatusTests {
  private func both() throws -> CodedDevice {
    try CodedDevice([.device, .otp, .seal], otp: hotpMethod, seal: counterSealMethod)
  }

  @Test func `the statuses of codes come in their order`() throws {
    let coded = try both()
    coded.ann.lockedUntil = coded.now + 1
    #expect(try coded.ask(otp: "000000", seal: "00000000", parameters: ["12345678901234567"]) == .commandRefused)
    #expect(try coded.ask(otp: "000000", seal: "00000000", sealUser: "bob") == .commandRefused)
    #expect(try coded.ask(otp: "000000") == .factorMissing)
    #expect(try coded.ask(seal: "00000000") == .factorMissing)
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(0)) == .lockedOut)
    coded.ann.unlock()
    #expect(try coded.ask(otp: "000000", seal: "00000000") == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(0), seal: "00000000") == .sealRejected)
    #expect(try coded.ask(otp: coded.otp(1), seal: coded.seal(0)) == .accepted)
  }

  @Test func `what a token or a proof is denied for comes before any code is looked at`() throws {
    let coded = try both()
    let before = coded.ann
    let request = try coded.request(otp: "000000", seal: "00000000")
    var wrong = try Prover.with(
      try coded.token.token(), request: request.copy(), integrity: Array(repeating: 0, count: 32))
    #expect(try coded.device.round(&wrong).response.status == .integrityMismatch)
    coded.device.policy.rules["unlock"]?.limits.generationFloor = 2
    #expect(try coded.device.status(of: coded.token, request: request.copy()) == .tokenRevoked)
    coded.device.policy.rules["unlock"]?.limits = TokenLimits(maximumAgeSeconds: 10)
    #expect(try coded.device.status(of: coded.token, request: request.copy()) == .tokenExpired)
    #expect(coded.ann == before)
  }

  @Test func `a peer that has not proved the device costs no user a failure`() throws {
    let coded = try both()
    let request = try coded.request(otp: "000000", seal: "00000000")
    for _ in 0..<12 {
      var prover = try Prover.with(
        try coded.token.token(), request: request.copy(), device: Array(repeating: 0, count: 32))
      let message = try coded.device.answer(from: &prover)
      #expect(coded.device.respond(message).status == .deviceMismatch)
    }
    #expect(coded.ann.failureCount == 0)
  }

  @Test func `codes that a command does not need are ignored`() throws {
    let coded = try both()
    coded.device.policy.rules["unlock"]?.factors = [.device]
    coded.ann.lockedUntil = coded.now + 1
    let before = coded.ann
    #expect(try coded.ask(otp: "000000", seal: "00000000", sealUser: "bob") == .accepted)
    #expect(coded.ann == before)
    coded.ann.unlock()
    coded.device.policy.rules["unlock"]?.factors = [.device, .seal]
    #expect(try coded.ask(otp: "000000", seal: coded.seal(0), user: "bob", sealUser: "ann") == .accepted)
    #expect(coded.ann.accounts[.otp]?.nextPosition == 0 && coded.ann.failureCount == 0)
  }

  @Test func `two codes of two users are refused, also where the token names one of them`() throws {
    let coded = try both()
    coded.device.store.users["bob"] = coded.ann
    let before = coded.ann
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(0), sealUser: "bob") == .commandRefused)
    coded.token.user = "ann"
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(0), sealUser: "bob") == .commandRefused)
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(0), user: "bob") == .commandRefused)
    #expect(coded.ann == before && coded.device.store.users["bob"] == before)
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(0)) == .accepted)
  }

  @Test func `a user who is not known is denied as one whose code is wrong`() throws {
    let coded = try both()
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(0), user: "bob") == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(0), user: "") == .otpRejected)
    #expect(try coded.ask(otp: coded.otp(0), seal: coded.seal(0), user: "Ann") == .otpRejected)
    #expect(coded.device.store.users.count == 1 && coded.ann.failureCount == 0)
  }

  @Test func `a compatibility round carries no codes`() {
    let maker = RoundMaker.compatibility.with { $0.round.factors = [.integrity, .device, .otp] }
    #expect(maker.status == .factorMissing)
    #expect(maker.decision.attempt == nil)
  }

  @Test func `a store that loses a secret rejects, and the failure stays counted`() throws {
    let coded = try CodedDevice([.device, .otp], otp: hotpMethod)
    coded.device.store.secrets = [:]
    #expect(try coded.ask(otp: coded.otp(0)) == .otpRejected)
    #expect(coded.ann.failureCount == 1 && coded.device.lock.performed.isEmpty)
  }
}
