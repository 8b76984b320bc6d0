import HoldfastStorage
import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

/// Rounds that are denied and change nothing: a token that is of no use has no power over disk and counter.
@Suite struct DeniedRoundsTests {
  private func counts(_ device: TestDevice, after count: UInt64 = 0) throws -> [DeniedRounds] {
    try device.ledger.auditEntries(after: count, limit: 10_000).compactMap {
      if case .denied(let rounds) = $0.event { rounds } else { nil }
    }
  }

  private func record(_ device: TestDevice, isForced: Bool = false) {
    device.ledger.recordTotals(
      milliseconds: device.clock.monotonicMilliseconds(), realClock: device.clock.seconds, isForced: isForced)
  }

  @Test func `a thousand rounds with an expired token write nothing for a minute, and then one entry`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let prover = try device.prover { ($0.issuedAt, $0.expires) = (testTime - 900, testTime - 300) }
    #expect(try connection.round(prover).status == .tokenExpired)
    let before = try device.ledger.summary()
    let observer = try device.observer()
    let changes = try observer.oneUnsigned("PRAGMA data_version")
    for _ in 1..<1000 { #expect(try connection.round(prover).status == .tokenExpired) }
    device.clock.advance(milliseconds: 59_999)
    record(device)
    #expect(try device.ledger.summary() == before)
    #expect(try observer.oneUnsigned("PRAGMA data_version") == changes)
    device.clock.advance(milliseconds: 1)
    record(device)
    let counted = DeniedRounds(
      status: .tokenExpired, verifyingKey: try device.issuer.keyID(), tokenID: prover.claims.tokenID, count: 1000)
    #expect(try counts(device) == [counted])
    #expect(try device.ledger.summary().audit.count == before.audit.count + 1)
    device.clock.advance(milliseconds: 120_000)
    record(device)
    #expect(try device.ledger.summary().audit.count == before.audit.count + 1)
  }

  @Test func `each token and status has a count, and a round that is written brings those that are due`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let first = try device.prover { $0.tokenID = TokenID(filledWith: 1) }
    let second = try device.prover { ($0.tokenID, $0.commands) = (TokenID(filledWith: 2), []) }
    #expect(try connection.round(first, "fly").status == .commandRefused)
    #expect(try connection.round(second).status == .commandRefused)
    #expect(try connection.round(first, flaws: .wrongIntegrity).status == .integrityMismatch)
    #expect(try connection.round(first, "fly").status == .commandRefused)
    #expect(try counts(device).isEmpty)
    device.clock.advance(milliseconds: 60_000)
    #expect(try connection.round(first).status == .accepted)
    #expect(try counts(device).map(\.count) == [2, 1, 1])
    #expect(try counts(device).map(\.status) == [.commandRefused, .commandRefused, .integrityMismatch])
    #expect(try counts(device).map(\.tokenID) == [1, 2, 1].map { TokenID(filledWith: $0) })
  }

  @Test func `a fresh token that is denied moves the floor, and is written at once`() throws {
    let device = try TestDevice()
    let before = try device.ledger.summary()
    let prover = try device.prover { ($0.issuedAt, $0.commands) = (testTime + 5, []) }
    #expect(try device.connect().round(prover).status == .commandRefused)
    let after = try device.ledger.summary()
    #expect(after.clockFloor == testTime + 5 && after.audit.count == before.audit.count + 1)
    #expect(try device.connect().round(prover).status == .commandRefused)
    #expect(try device.ledger.summary() == after)
  }

  @Test func `an attempt with codes is written, and one of a user who is locked out or not known is counted`() throws {
    let device = try TestDevice()
    device.requireCodes()
    try device.add()
    let prover = try device.prover()
    let wrong = UserCode(user: ann, code: BoundedText("000000"))
    for failures in 1...5 as ClosedRange<UInt64> {
      let before = try device.ledger.summary().audit.count
      #expect(try device.connect().round(prover, otp: wrong).status == .otpRejected)
      #expect(try device.ledger.summary().audit.count == before + 1)
      #expect(try device.record()?.failureCount == failures)
    }
    let before = try device.ledger.summary()
    #expect(try device.connect().round(prover, otp: wrong).status == .lockedOut)
    let nobody = UserCode(user: BoundedText("nobody"), code: BoundedText("000000"))
    #expect(try device.connect().round(prover, otp: nobody).status == .otpRejected)
    #expect(try device.ledger.summary() == before)
  }

  @Test func `with more than 1024 tokens and statuses the rest is counted by status`() throws {
    let counter = DeniedCounter()
    func round(_ number: Int) -> AppraisalInput { numberedRound(number) }
    for number in 0..<1100 { counter.add(round(number), .tokenExpired) }
    counter.add(round(0), .tokenExpired)
    counter.add(round(0), .busy)
    let counts = counter.take(at: 0, isForced: true)
    #expect(counts.count == 1026)
    #expect(counts[0].count == 2 && counts[1..<1024].allSatisfy { $0.count == 1 && $0.tokenID != nil })
    #expect(Set(counts[0..<1024].map(\.tokenID)).count == 1024)
    #expect(
      counts[1024...] == [
        DeniedRounds(status: .tokenExpired, verifyingKey: nil, tokenID: nil, count: 76),
        DeniedRounds(status: .busy, verifyingKey: nil, tokenID: nil, count: 1),
      ])
    #expect(counter.take(at: 0, isForced: true).isEmpty)
    counter.putBack(counts)
    #expect(counter.take(at: 0, isForced: true) == counts)
  }

  @Test func `the minute of a count does not begin while there is none`() {
    let counter = DeniedCounter()
    #expect(counter.take(at: 0).isEmpty)
    counter.add(numberedRound(1), .tokenExpired)
    #expect(counter.take(at: 60_000).isEmpty)
    #expect(counter.take(at: 119_999).isEmpty)
    #expect(counter.take(at: 120_000).map(\.count) == [1])
  }

  @Test func `counts that could not be written are kept`() throws {
    let device = try TestDevice()
    let prover = try device.prover { $0.commands = [] }
    #expect(try device.connect().round(prover).status == .commandRefused)
    try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON audit BEGIN SELECT raise(ABORT, ''); END")
    record(device, isForced: true)
    try device.tamper("DROP TRIGGER fault")
    #expect(try counts(device).isEmpty)
    record(device, isForced: true)
    #expect(try counts(device).map(\.count) == [1])
  }

  @Test func `a counter that anchors the ledger does not rise for them`() throws {
    let tpm = FakeTPM()
    let device = try TestDevice(tpm: tpm)
    let prover = try device.prover { $0.commands = [] }
    let connection = try device.connect()
    #expect(try connection.round(prover).status == .commandRefused)
    let before = try #require(tpm.count(at: device.folder.counter))
    for _ in 0..<20 { #expect(try connection.round(prover).status == .commandRefused) }
    #expect(tpm.count(at: device.folder.counter) == before)
    #expect(try connection.round(try device.prover()).status == .accepted)
    #expect(tpm.count(at: device.folder.counter) == before + 1)
  }

  @Test func `one token keeps so many nonces, and others still have room`() throws {
    var policy = DevicePolicy.forSimulatedLock
    policy.commands[BoundedText("unlock")]?.allowsCompatibility = true
    let device = try TestDevice(policy: policy, limits: LedgerLimits(nonceQuota: 3))
    let connection = try device.connect()
    let revoked = try device.prover { ($0.tokenID, $0.commands) = (TokenID(filledWith: 1), []) }
    func nonce(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: 16) }
    for byte in 1...3 as ClosedRange<UInt8> {
      #expect(try connection.compatibilityRound(revoked, nonce: nonce(byte)) == .commandRefused)
    }
    let full = try device.ledger.summary()
    for byte in 4...9 as ClosedRange<UInt8> {
      #expect(try connection.compatibilityRound(revoked, nonce: nonce(byte)) == .busy)
    }
    #expect(try connection.compatibilityRound(revoked, nonce: nonce(3)) == .deviceMismatch)
    #expect(try device.ledger.summary() == full)
    #expect(try connection.compatibilityRound(try device.prover(), nonce: nonce(4)) == .accepted)
  }
}

/// A round with one of many tokens.
private func numberedRound(_ number: Int) -> AppraisalInput {
  var round = AppraisalInput.accepted()
  (round.tokenID[0], round.tokenID[1]) = (UInt8(number >> 8), UInt8(number & 0xff))
  return round
}

extension TestDevice {
  /// Another connection to the ledger: it sees whether the file was written.
  fileprivate func observer() throws -> Database {
    try Database(
      path: DeviceFile.ledger.path(in: folder.path), applicationID: LedgerTables.applicationID,
      schema: LedgerTables.schema, creation: .never)
  }
}
