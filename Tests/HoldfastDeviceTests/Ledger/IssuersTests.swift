import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastDevice

@Suite struct IssuersTests {
  @Test func `an issuer's key is rolled over without a round in between that fails`() throws {
    let device = try TestDevice()
    let successor = try TestIssuer()
    let connection = try device.connect()
    let old = try device.prover()
    #expect(try connection.round(old).status == .accepted)

    let new = try device.prover(from: successor)
    #expect(try connection.round(new).status == .tokenInvalid)
    try device.ledger.trust(successor.trustedKey(), realClock: testTime)
    for _ in 0..<2 {
      for prover in [old, new] {
        #expect(try connection.round(prover).status == .accepted)
        #expect(try connection.round(prover, flaws: .asReference).status == .accepted)
      }
    }

    try device.ledger.removeTrust(try device.issuer.keyID(), realClock: testTime)
    #expect(try connection.round(old, flaws: .asReference).status == .tokenInvalid)
    #expect(try connection.round(old, flaws: [.asReference, .wrongDevice]).status == .tokenInvalid)
    #expect(try connection.round(old).status == .tokenInvalid)
    #expect(try connection.round(new, flaws: .asReference).status == .accepted)
  }

  @Test func `each issuer has generations and uses of its own`() throws {
    let device = try TestDevice()
    let other = try TestIssuer()
    try device.ledger.trust(other.trustedKey(), realClock: testTime)
    let connection = try device.connect()
    #expect(try connection.round(try device.prover { $0.generation = 9 }).status == .accepted)
    #expect(try connection.round(try device.prover(from: other)).status == .accepted)
    #expect(try connection.round(try device.prover()).status == .tokenRevoked)
    func once(_ issuer: TestIssuer?) throws -> TestProver {
      try device.prover(from: issuer) { ($0.generation, $0.maximumUses) = (9, 1) }
    }
    for issuer in [nil, other] {
      let prover = try once(issuer)
      #expect(try connection.round(prover).status == .accepted)
      #expect(try connection.round(prover).status == .usesExhausted)
    }
  }

  @Test func `64 issuers are trusted and each is believed, and there is no room for another`() throws {
    let device = try TestDevice(policy: withMAC)
    var issuers = [device.issuer]
    while issuers.count < 64 {
      let issuer = try TestIssuer(
        sharing: issuers.count % 2 == 0 ? [UInt8](repeating: UInt8(issuers.count), count: 32) : nil)
      try device.ledger.trust(issuer.trustedKey(), realClock: testTime)
      issuers.append(issuer)
    }
    #expect(throws: LedgerFault.tooManyIssuers) {
      try device.ledger.trust(try TestIssuer().trustedKey(), realClock: testTime)
    }
    let connection = try device.connect()
    for issuer in issuers {
      #expect(try connection.round(try device.prover(from: issuer)).status == .accepted)
    }
  }
}
