import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastDevice

/// Pages of the audit log, and receipts for them, at a device.
@Suite struct AuditHomeTests {
  /// Runs accepted rounds, and returns the connection after the last one.
  private func visit(_ device: TestDevice, rounds: Int = 1) throws -> TestConnection {
    let connection = try device.connect()
    let prover = try device.prover()
    for _ in 0..<rounds { #expect(try connection.round(prover, number: nextNumber(device)).status == .accepted) }
    return connection
  }

  private func nextNumber(_ device: TestDevice) throws -> UInt64 { try device.ledger.auditHead().count + 1 }

  @Test func `pages bring every entry home, in order and whole, whoever asks for them`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device)
    _ = try visit(device, rounds: 300)
    var chain = AuditChain()
    var cryptography = OpenSSLCryptography()
    var pageCount = 0
    while chain.count < (try device.ledger.auditHead().count), pageCount < 100 {
      let page = try home.open(try #require(try visit(device).page()))
      #expect(page.base == chain)
      for entry in page.entries { try chain.advance(over: entry.span, using: &cryptography) }
      pageCount += 1
    }
    #expect(pageCount > 3)
    #expect(chain == (try device.ledger.auditHead()))
    // The last page has reached the end, so that the next one begins anew.
    #expect(try home.open(try #require(try visit(device).page())).base == AuditChain())
  }

  private func keepsAgreementKey<Kept: OwnerLedger>(_ ledger: Kept, of home: KeyID) throws {
    let points = try [2, 3].map { try P256PrivateKey(scalar: secret([UInt8](repeating: $0, count: 32))).publicPoint }
    let audit = try ledger.summary().audit
    #expect(try ledger.setAgreementKey(points[0], of: home) && !ledger.setAgreementKey(points[0], of: home))
    #expect(try ledger.setAgreementKey(points[1], of: home) && !ledger.setAgreementKey(points[1], of: home))
    #expect(try !ledger.setAgreementKey(points[0], of: KeyID(filledWith: 9)))
    #expect(try ledger.summary().audit == audit)
  }

  @Test func `the key for agreement of the home is set once, and no entry tells of it`() throws {
    let device = try TestDevice()
    let home = try device.issuer.keyID()
    try keepsAgreementKey(device.ledger, of: home)
    var policy = DevicePolicy.forSimulatedLock
    policy.auditRules.home = home
    let test = try TestImage(policy: policy, trusting: [PublicKeyJWK(point: device.issuer.point)])
    try keepsAgreementKey(test.image, of: home)
    try test.reopen()
    let point = try P256PrivateKey(scalar: secret([UInt8](repeating: 3, count: 32))).publicPoint
    #expect(try !test.image.setAgreementKey(point, of: home))
  }

  @Test func `a page begins where the courier asks, and there is none beyond the end or before the beginning`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device)
    let count = try device.ledger.auditHead().count
    let page = try home.open(try #require(try visit(device).page(from: count)))
    #expect(page.base.count == count - 1)
    #expect(page.end == (try device.ledger.auditHead()))
    #expect(try visit(device).page(from: count + 4) == nil)
    #expect(try visit(device).page(from: maximumInteger) == nil)
  }

  @Test func `an accepted round permits one page, and a denied or repeated one none`() throws {
    let device = try TestDevice()
    _ = try TestHome(of: device)
    let connection = try visit(device)
    #expect(try connection.page() != nil)
    #expect(try connection.page() == nil)
    let prover = try device.prover()
    #expect(try connection.round(prover, "open-all", number: 90).status == .commandRefused)
    #expect(try connection.page() == nil)
    #expect(try connection.round(prover, number: 90).status == .accepted)
    #expect(try connection.round(prover, number: 90).notice?.highestRequestNumber == 90)
    #expect(try connection.page() == nil)
  }

  @Test func `who proved nothing on the connection gets no page, and is sent away`() throws {
    let device = try TestDevice()
    _ = try TestHome(of: device)
    let stranger = try #require(try device.connect().mail(.page(from: 0)))
    #expect(stranger.outcome.closesConnection)
    #expect(stranger.outcome.status == .malformed)
  }

  @Test func `without a home that is trusted and has announced a key there is no page`() throws {
    let device = try TestDevice()
    #expect(try visit(device).page() == nil)
    _ = try TestHome(of: device)
    let prover = try device.prover()
    let connection = try device.connect()
    #expect(try connection.round(prover, number: 1).notice?.hasAuditPage == true)
    #expect(try connection.page() != nil)
    device.policy.auditRules.home = KeyID(filledWith: 9)
    #expect(try connection.round(prover, number: 2).status == .accepted)
    #expect(try connection.page() == nil)
    device.policy.auditRules = AuditRules()
    device.ledger.auditRules = AuditRules()
    #expect(try connection.round(prover, number: 3).notice?.hasAuditPage == false)
    #expect(try connection.page() == nil)
  }

  @Test func `two pages of the same entries have nothing in common, and only their home opens them`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device)
    let first = try #require(try visit(device).page(from: 1))
    let second = try #require(try visit(device).page(from: 1))
    #expect(zip(first, second).count { $0 == $1 } < first.count / 16)
    #expect(try home.open(first).entries.first == home.open(second).entries.first)
    let other = try TestHome(of: try TestDevice())
    #expect(throws: CryptographyFailure.self) { try other.open(first) }
    for position in [0, 15, 16, first.count - 17, first.count - 1] {
      var changed = first
      changed[position] ^= 1
      #expect(throws: CryptographyFailure.self) { try home.open(changed) }
    }
    #expect(throws: CryptographyFailure.self) { try home.open(Array(first.dropLast(256))) }
  }

  @Test func `a receipt acknowledges once, durably, and pages then begin behind it`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device)
    let connection = try visit(device, rounds: 3)
    let receipt = try home.receipt(upTo: 4)
    #expect(try connection.deliver(receipt: receipt) == .taken)
    #expect(try connection.deliver(receipt: receipt) == .known)
    #expect(try connection.deliver(receipt: try home.receipt(upTo: 3)) == .known)
    // The check of this round was used up.
    #expect(try connection.deliver(receipt: try home.receipt(upTo: 5)) == .busy)
    try device.reopenLedger()
    device.ledger.auditRules = device.policy.auditRules
    #expect(try device.ledger.acknowledgedAuditCount() == 4)
    #expect(try home.open(try #require(try visit(device).page())).base.count == 4)
    // Nothing was dropped: the owner still reads all.
    #expect(try device.ledger.auditEntries(limit: 100).first?.sequence == 1)
  }

  @Test func `a receipt for entries that the log does not have drops nothing, and is an entry of the log`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device)
    let end = try device.ledger.auditHead()
    let wrong = [
      AuditChain(count: 2, head: Digest(filledWith: 1)), AuditChain(count: end.count + 100, head: end.head),
      AuditChain(count: maximumInteger, head: Digest()),
    ]
    for chain in wrong {
      #expect(try visit(device).deliver(receipt: try home.receipt(chain)) == .refused)
      #expect(try device.ledger.acknowledgedAuditCount() == 0)
      let last = try #require(try device.ledger.auditEntries(limit: 1000).last)
      #expect(last.event == .receiptRefused(try device.issuer.keyID(), count: chain.count))
    }
  }

  @Test func `a receipt by another key, for another device or malformed is refused without a trace`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device)
    let other = try TestIssuer()
    try device.ledger.trust(.signing(other.point), realClock: testTime)
    let connection = try visit(device)
    let head = try device.ledger.auditHead()
    let chain = try home.chain(2)
    #expect(try connection.deliver(receipt: try home.receipt(chain, by: other)) == .refused)
    #expect(try connection.deliver(receipt: try home.receipt(chain, by: try TestIssuer())) == .refused)
    #expect(try connection.deliver(receipt: try home.receipt(chain, for: DeviceID(filledWith: 1))) == .notAddressed)
    let receipt = try home.receipt(chain)
    for bad in [[], [0], Array(receipt.dropLast()), receipt + [0]] as [[UInt8]] {
      #expect(try connection.deliver(receipt: bad) == .refused)
    }
    #expect(try device.ledger.auditHead() == head)
    #expect(try device.ledger.acknowledgedAuditCount() == 0)
    // Nothing of that cost the check. A forged one does, and ends the connection.
    var forged = receipt
    forged[forged.count - 1] ^= 1
    let answer = try #require(try visit(device).mail(.receipt, forged))
    #expect(answer.outcome.closesConnection)
    #expect(try device.ledger.acknowledgedAuditCount() == 0)
  }

  @Test func `a full log drops what is acknowledged first, and counts what is not`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device, bound: 64)
    let connection = try visit(device, rounds: 40)
    #expect(try connection.deliver(receipt: try home.receipt(upTo: 30)) == .taken)
    _ = try visit(device, rounds: 40)
    var events = try device.ledger.auditEntries(limit: 1000).map(\.event)
    #expect(!events.contains { if case .entriesLost = $0 { true } else { false } })
    _ = try visit(device, rounds: 80)
    events = try device.ledger.auditEntries(limit: 1000).map(\.event)
    #expect(events.contains { if case .entriesLost = $0 { true } else { false } })
    #expect(events.count <= 64 + 2)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `a log that must not lose anything refuses commands, and a courier can end that`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device, bound: 64, refusesWhenFull: true)
    let connection = try device.connect()
    let prover = try device.prover()
    var verdict = try connection.round(prover, number: 1)
    for number in 2..<200 where verdict.status == .accepted {
      verdict = try connection.round(prover, number: UInt64(number))
    }
    #expect(verdict.status == .commandRefused)
    #expect(verdict.result == "auditLogFull")
    #expect(verdict.notice?.hasAuditPage == true)
    let count = try device.ledger.auditHead().count
    #expect(try connection.page() != nil)
    #expect(try connection.round(prover, number: 201).status == .commandRefused)
    #expect(try device.ledger.auditHead().count == count)
    #expect(try connection.deliver(receipt: try home.receipt(upTo: count)) == .taken)
    #expect(try connection.round(prover, number: 202).status == .accepted)
  }

  @Test func `what a denied round changes is kept also while the log is full`() throws {
    let device = try TestDevice()
    _ = try TestHome(of: device, bound: 64, refusesWhenFull: true)
    let (connection, prover) = (try device.connect(), try device.prover())
    while try connection.round(prover).status == .accepted {}
    let full = try device.ledger.auditHead()
    #expect(try connection.round(device.prover { $0.issuedAt = testTime + 5 }).status == .commandRefused)
    #expect(try device.ledger.summary().clockFloor == testTime + 5)
    #expect(try device.ledger.auditHead() == full)
  }

  @Test func `no prover and no stranger pushes anything out of a log that must not lose anything`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device, bound: 64, refusesWhenFull: true)
    let (connection, prover) = (try device.connect(), try device.prover())
    while try connection.round(prover).status == .accepted {}
    let full = try device.ledger.auditHead()
    let wrong = try home.receipt(AuditChain(count: 2, head: Digest(filledWith: 1)))
    for nonce: UInt8 in 0..<70 {
      let nonce = [UInt8](repeating: nonce, count: 16)
      #expect(try connection.compatibilityRound(prover, nonce: nonce) == .commandRefused)
      #expect(try connection.round(prover).status == .commandRefused)
      #expect(try connection.deliver(receipt: wrong) == .refused)
    }
    #expect(try device.connect().mail(.page(from: 0))?.outcome.status == .malformed)
    func passMinutes() {
      for _ in 0..<4 {
        device.clock.advance(milliseconds: 60_000)
        device.ledger.recordTotals(milliseconds: device.clock.monotonicMilliseconds(), realClock: testTime)
      }
    }
    passMinutes()
    #expect(try device.ledger.auditHead() == full)
    // The totals are written once there is room again.
    #expect(try connection.deliver(receipt: try home.receipt(upTo: full.count)) == .busy)
    #expect(try connection.round(prover).status == .commandRefused)
    #expect(try connection.deliver(receipt: try home.receipt(upTo: full.count)) == .taken)
    passMinutes()
    var denied: UInt64 = 0
    let events = try device.ledger.auditEntries(after: full.count, limit: 100).map(\.event)
    for event in events { if case .denied(let rounds) = event { denied += rounds.count } }
    #expect(denied == 1 + 70 + 70 + 1)
    #expect(events.contains { if case .unproved = $0 { true } else { false } })
  }

  @Test func `of the couriers of a minute, 256 are counted`() throws {
    let device = try TestDevice()
    _ = try TestHome(of: device)
    for number in 0...255 as ClosedRange<UInt8> {
      let connection = try device.connect()
      let prover = try device.prover { $0.tokenID = TokenID(filledWith: number) }
      #expect(try connection.round(prover).status == .accepted)
      _ = try connection.page()
    }
    var bytes = [UInt8](repeating: 1, count: 16)
    bytes[15] = 2
    let last = TokenID(bytes.span)!
    let connection = try device.connect()
    #expect(try connection.round(try device.prover { $0.tokenID = last }).status == .accepted)
    _ = try connection.page()
    device.ledger.recordTotals(milliseconds: 0, realClock: testTime, isForced: true)
    #expect(try device.ledger.couriers().count == 256)
  }

  @Test func `what a courier carries is counted by its token`() throws {
    let device = try TestDevice()
    let home = try TestHome(of: device)
    _ = try visit(device).page()
    let connection = try visit(device)
    _ = try connection.page()
    #expect(try connection.deliver(receipt: try home.receipt(upTo: 2)) == .taken)
    device.ledger.recordTotals(milliseconds: 0, realClock: testTime, isForced: true)
    let courier = try #require(try device.ledger.couriers().first)
    #expect((courier.counts.pages, courier.counts.receipts, courier.counts.bulletins) == (2, 1, 0))
    #expect(courier.courier.tokenID == (try device.prover()).claims.tokenID)
    #expect(try device.ledger.couriers().count == 1)
  }
}
