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

  @Test func `an issuer is trusted from its begin to its end by the device's time, also for a remembered token`() throws
  {
    let device = try TestDevice()
    let connection = try device.connect()
    let prover = try device.prover()
    func trust(_ terms: TrustTerms) throws {
      #expect(try device.ledger.trust(device.issuer.trustedKey(), terms: terms, realClock: testTime))
    }
    func statuses() throws -> [Status] {
      [try connection.round(prover).status, try connection.round(prover, flaws: .asReference).status]
    }
    #expect(try statuses() == [.accepted, .accepted])
    try trust(TrustTerms(from: testTime + 10, until: testTime + 20, label: BoundedText("next year's")))
    for (offset, status) in [(0, Status.tokenInvalid), (9, .tokenInvalid), (10, .accepted), (19, .accepted)] {
      device.clock.seconds = testTime + UInt64(offset)
      #expect(try statuses() == [status, status], "after \(offset) s")
    }
    // At its end, and with a clock that goes back or fails after the floor has passed it.
    device.clock.seconds = testTime + 20
    #expect(try statuses() == [.tokenInvalid, .tokenInvalid])
    try device.ledger.moveClockFloor(to: testTime + 20, realClock: testTime)
    for seconds in [testTime + 15, nil] {
      device.clock.seconds = seconds
      #expect(try statuses() == [.tokenInvalid, .tokenInvalid])
    }
    // What is not named stays, and what is named changes.
    try trust(TrustTerms(label: BoundedText("for good")))
    #expect(try statuses() == [.tokenInvalid, .tokenInvalid])
    try trust(TrustTerms(until: testTime + 900))
    #expect(try statuses() == [.accepted, .accepted])
    #expect(try !device.ledger.trust(device.issuer.trustedKey(), realClock: testTime))
    #expect(throws: LedgerFault.emptyPeriod) { try trust(TrustTerms(until: testTime + 10)) }
    #expect(throws: LedgerFault.emptyPeriod) { try trust(TrustTerms(from: testTime + 900)) }
    let kept = TrustTerms(from: testTime + 10, until: testTime + 900, label: BoundedText("for good"))
    #expect(try device.ledger.issuers().map(\.terms) == [kept])
    // A key that is removed and trusted again has no terms.
    try device.ledger.removeTrust(try device.issuer.keyID(), realClock: testTime)
    try device.ledger.trust(device.issuer.trustedKey(), realClock: testTime)
    #expect(try device.ledger.issuers().map(\.terms) == [TrustTerms()])
  }

  @Test func `the trust in an issuer lasts for a second at least, also in 1970`() throws {
    let device = try TestDevice()
    func trust(_ terms: TrustTerms) throws -> Bool {
      try device.ledger.trust(device.issuer.trustedKey(), terms: terms, realClock: testTime)
    }
    #expect(throws: LedgerFault.emptyPeriod) { try trust(TrustTerms(until: 0)) }
    #expect(throws: LedgerFault.emptyPeriod) { try trust(TrustTerms(from: 1, until: 1)) }
    #expect(try trust(TrustTerms(until: 1)))
    #expect(try device.ledger.issuers().map(\.terms) == [TrustTerms(until: 1)])
  }

  @Test func `a token from after the end of the trust never counts, however far behind the device's clock is`() throws {
    let device = try TestDevice()
    try device.ledger.trust(
      device.issuer.trustedKey(), terms: TrustTerms(until: testTime + 20), realClock: testTime)
    let connection = try device.connect()
    func status(issuedAfter seconds: UInt64) throws -> Status {
      try connection.round(try device.prover { $0.issuedAt = testTime + seconds }).status
    }
    for seconds in [testTime - 100, nil] {
      device.clock.seconds = seconds
      #expect(try status(issuedAfter: 20) == .tokenInvalid)
      #expect(try status(issuedAfter: 21) == .tokenInvalid)
    }
    // Such a token does not move the floor either.
    #expect(try device.ledger.summary().clockFloor == testTime)
    #expect(try status(issuedAfter: 19) == .accepted)
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
