import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import TestSupport
import Testing

import HoldfastDevice

@Suite struct AuditLogTests {
  /// A device whose log has a dozen entries.
  private func device() throws -> TestDevice {
    let device = try TestDevice()
    let connection = try device.connect()
    for command in ["unlock", "lock", "open", "status", "unlock"] {
      _ = try connection.round(try device.prover(), command)
    }
    for _ in 0..<6 { try device.ledger.record(.stopped, realClock: testTime) }
    return device
  }

  @Test func `what happened is there in order, and the chain holds`() throws {
    let device = try device()
    let entries = try device.ledger.auditEntries(limit: 100)
    #expect(entries.map(\.sequence) == Array(1...12))
    #expect(
      entries[0]
        == AuditEntry(sequence: 1, time: testTime, event: .created(device.folder.descriptor.deviceID)))
    #expect(entries[1].event == .issuerTrusted(try device.issuer.keyID()))
    let rounds = entries.compactMap { if case .round(let round) = $0.event { round } else { nil } }
    #expect(rounds.map(\.status) == [.accepted, .accepted, .accepted, .accepted])
    #expect(rounds.map { $0.command.description } == ["unlock", "lock", "status", "unlock"])
    #expect(rounds[0].subject == BoundedText("app.test"))
    #expect(rounds[0].tokenID == TokenID(filledWith: 0x77))
    #expect(try rounds[0].verifyingKey == device.issuer.keyID())
    let report = try device.ledger.verifyAudit()
    #expect(report.firstBroken == nil)
    #expect(try report.recorded == device.ledger.summary().audit)
    #expect(report.recorded.count == 12)
  }

  @Test func `a changed, missing, moved or cut entry is found at its place`() throws {
    let changed = try device()
    try changed.tamper("UPDATE audit SET entry = (SELECT entry FROM audit WHERE sequence = 4) WHERE sequence = 6")
    #expect(try changed.ledger.verifyAudit().firstBroken == 6)
    let missing = try device()
    try missing.tamper("DELETE FROM audit WHERE sequence = 3")
    #expect(try missing.ledger.verifyAudit().firstBroken == 3)
    let cut = try device()
    try cut.tamper("DELETE FROM audit WHERE sequence > 9")
    #expect(try cut.ledger.verifyAudit().firstBroken == 10)
    let moved = try device()
    try moved.tamper("UPDATE audit SET sequence = 100 WHERE sequence = 12")
    #expect(try moved.ledger.verifyAudit().firstBroken == 12)
    let rehashed = try device()
    try rehashed.tamper("UPDATE audit SET hash = zeroblob(32) WHERE sequence = 5")
    #expect(try rehashed.ledger.verifyAudit().firstBroken == 5)
    let headless = try device()
    try headless.tamper("UPDATE state SET audit_head = zeroblob(32)")
    #expect(try headless.ledger.verifyAudit().firstBroken == 12)
    let emptied = try device()
    try emptied.tamper("DELETE FROM audit")
    #expect(try emptied.ledger.verifyAudit().firstBroken == 1)
  }

  @Test func `the hash of an entry is the one that the contract names`() throws {
    var chain = AuditChain()
    let entry = AuditEntry(sequence: 1, time: 2, event: .stopped).encoded
    #expect(entry == [0x83, 0x01, 0x02, 0x04])
    var cryptography = OpenSSLCryptography()
    try chain.advance(over: entry.span, using: &cryptography)
    // python3: sha256(b"holdfast/1 audit\0" + bytes(32) + bytes.fromhex("83010204"))
    #expect(hexadecimal(chain.head) == "5a6f389454b21a4b55cce662ac3001641d657db68f67f7e12e78b967d5fa5a48")
    #expect(chain.count == 1)
  }

  @Test func `every kind of event reads back as it was written`() throws {
    let keyID = KeyID(filledWith: 3)
    let events: [AuditEvent] = [
      .unproved([.malformed: 7, .busy: 1 << 31]),
      .created(DeviceID(filledWith: 3)), .reset(DeviceID(filledWith: 4)),
      .generationFloorMoved(keyID, from: 2, to: 1), .started(bootCount: 4), .stopped, .issuerTrusted(keyID),
      .issuerRemoved(keyID), .policySeen(nil),
      .policySeen(Digest(filledWith: 8)), .clockFloorMoved(from: 1, to: 2),
      .denied(
        DeniedRounds(status: .tokenExpired, verifyingKey: keyID, tokenID: TokenID(filledWith: 4), count: 1 << 40)),
      .denied(DeniedRounds(status: .lockedOut, verifyingKey: nil, tokenID: TokenID(filledWith: 4), count: 1)),
      .denied(DeniedRounds(status: .busy, verifyingKey: nil, tokenID: nil, count: 2)),
      .logCut(AuditChain(count: 3, head: Digest(filledWith: 1))),
      .policyKeySet(keyID), .policyKeySet(nil), .actuatorEvent(AuditedActuatorEvent(round: 4, "held open")),
    ]
    for event in events {
      let entry = AuditEntry(sequence: 5, time: 6, event: event)
      let bytes = entry.encoded
      #expect(try AuditEntry(bytes.span) == entry)
      let cut = Array(bytes.dropLast())
      #expect(throws: EncodingFault.self) { try AuditEntry(cut.span) }
    }
  }

  @Test(
    arguments: [
      [0x83, 1, 2, 2, 0], [0x84, 1, 2, 2], [0x84, 1, 2, 2, 0], [0x82, 1, 2, 2], [0x85, 1, 2, 8, 0], [0x83, 1, 2, 9],
      [0x83, 1, 2], [0x84, 1, 2, 4], [0x83, 1, 2, 4, 0], [0x83, 1, 2, 11],
      [0x84, 1, 2, 1, 0x81, 0x82, 13, 0], [0x84, 1, 2, 1, 0x81, 0x82, 18, 1],
      [0x84, 1, 2, 1, 0x81, 0x82, 13, 0x1b, 0, 0, 0, 1, 0, 0, 0, 0],
      [0x87, 1, 2, 17, 2, 0xf6, 0xf6, 0], [0x87, 1, 2, 17, 0, 0xf6, 0xf6, 1], [0x87, 1, 2, 17, 18, 0xf6, 0xf6, 1],
      [0x87, 1, 2, 17, 2, 0x48, 1, 2, 3, 4, 5, 6, 7, 8, 0xf6, 1], [0x86, 1, 2, 17, 2, 0xf6, 0xf6],
      [0x85, 1, 2, 18, 1, 0xf6],
      [0x84, 1, 2, 1, 0x82, 0x82, 13, 1, 0x82, 13, 1], [0x84, 1, 2, 1, 0x82, 0x82, 13, 1, 0x82, 12, 1],
    ] as [[UInt8]])
  func `what is no entry is refused`(bytes: [UInt8]) {
    #expect(throws: EncodingFault.self) { try AuditEntry(bytes.span) }
  }

  @Test func `a round is of one of two forms`() throws {
    let device = try TestDevice()
    _ = try device.connect().round(try device.prover())
    let entry = try #require(try device.ledger.auditEntries(limit: 10).last)
    var bytes = entry.encoded
    // Transport and version follow: null, and three numbers in an array.
    let form = bytes.count - 6
    #expect(bytes[form...].prefix(3) == [0, 0xf6, 0x83])
    bytes[form] = 1
    #expect(try AuditEntry(bytes.span) != entry)
    bytes[form] = 2
    #expect(throws: EncodingFault.unexpected) { try AuditEntry(bytes.span) }
  }

  @Test func `a log that was written anew from another entry's number on is broken there`() throws {
    let device = try TestDevice()
    var chain = try device.ledger.summary().audit
    let forged = AuditEntry(sequence: 9, time: testTime, event: .stopped).encoded
    var cryptography = OpenSSLCryptography()
    try chain.advance(over: forged.span, using: &cryptography)
    try device.tamper("INSERT INTO audit VALUES (3, x'8309', x'00')")
    try device.tamper("UPDATE audit SET entry = ? WHERE sequence = 3", .bytes(forged))
    try device.tamper("UPDATE audit SET hash = ? WHERE sequence = 3", .copying(chain.head.bytes))
    try device.tamper("UPDATE state SET audit_count = 3")
    try device.tamper("UPDATE state SET audit_head = ?", .copying(chain.head.bytes))
    #expect(try device.ledger.verifyAudit().firstBroken == 3)
  }

  @Test func `a connection's refusals are counted also after a round that was settled`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    #expect(try connection.round(try device.prover()).status == .accepted)
    #expect(try connection.round(try device.prover(), flaws: .wrongDevice).status == .deviceMismatch)
    let last = try device.ledger.auditEntries(limit: 10).last
    #expect(last?.event == .unproved([.deviceMismatch: 1]))
  }

  @Test func `answers to strangers are entered as totals, at most once a minute`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let before = try device.ledger.summary().audit.count
    func strange() throws {
      _ = try connection.challenge()
      _ = connection.respond([0xff])
    }
    func totals() throws -> [UnauthenticatedTotals] {
      try device.ledger.auditEntries(after: before, limit: 100).compactMap {
        if case .unproved(let totals) = $0.event { totals } else { nil }
      }
    }
    for _ in 0..<100 { try strange() }
    let first: UnauthenticatedTotals = [.malformed: 1]
    #expect(try totals() == [first])
    device.clock.advance(milliseconds: 59_999)
    try strange()
    #expect(try totals() == [first])
    device.clock.advance(milliseconds: 1)
    try strange()
    #expect(try totals() == [first, [.malformed: 101]])
    try strange()
    device.ledger.recordTotals(
      milliseconds: device.clock.monotonicMilliseconds(), realClock: nil, isForced: true)
    #expect(try totals().last == [.malformed: 1])
    device.ledger.recordTotals(
      milliseconds: device.clock.monotonicMilliseconds(), realClock: nil, isForced: true)
    #expect(try totals().count == 3)
  }

  @Test func `totals that are due are entered by the next round that is settled`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let prover = try device.prover()
    for _ in 0..<2 { #expect(try connection.round(prover, flaws: .wrongDevice).status == .deviceMismatch) }
    device.clock.advance(milliseconds: 60_000)
    #expect(try connection.round(prover).status == .accepted)
    let last = try device.ledger.auditEntries(limit: 10).last
    #expect(last?.event == .unproved([.deviceMismatch: 1]))
  }

  @Test func `an entry has the later time of clock floor and real clock`() throws {
    let device = try TestDevice()
    for realClock in [testTime + 50, testTime - 50, nil] {
      try device.ledger.record(.stopped, realClock: realClock)
    }
    let times = try device.ledger.auditEntries(limit: 10).map(\.time)
    #expect(times.suffix(3) == [testTime + 50, testTime, testTime])
  }

  @Test func `totals that could not be written are kept`() throws {
    let device = try TestDevice()
    device.ledger.unproved.add(.busy)
    try device.tamper("CREATE TRIGGER fault BEFORE INSERT ON audit BEGIN SELECT raise(ABORT, ''); END")
    device.ledger.recordTotals(milliseconds: 0, realClock: nil)
    try device.tamper("DROP TRIGGER fault")
    device.ledger.recordTotals(milliseconds: 60_000, realClock: nil)
    let last = try device.ledger.auditEntries(limit: 10).last
    #expect(last?.event == .unproved([.busy: 1]))
  }
}
