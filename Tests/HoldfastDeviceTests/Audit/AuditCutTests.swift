import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastStorage
import TestSupport
import Testing

import HoldfastDevice

/// Cutting the audit log behind a recorded head, by the owner and by policy.
@Suite struct AuditCutTests {
  /// A device whose log has that many entries.
  private func device(entries: UInt64 = 20) throws -> TestDevice {
    let device = try TestDevice()
    while try device.ledger.summary().audit.count < entries { try device.ledger.record(.stopped, realClock: testTime) }
    return device
  }

  /// Adds entries in one transaction.
  private func add(_ count: Int, to ledger: Ledger) throws {
    try ledger.write { (tables, state) throws(DatabaseError) in
      for _ in 0..<count { try tables.append(.stopped, time: testTime, to: &state) }
    }
  }

  private func cut(_ device: TestDevice, before sequence: UInt64, _ name: String = "cut") throws -> AuditChain {
    try device.ledger.cutAudit(before: sequence, to: device.place.file(name), realClock: testTime + 7)
  }

  private func rowCount(_ device: TestDevice) throws -> UInt64? {
    try device.ledger.read { (tables) throws(DatabaseError) in
      try tables.database.oneUnsigned("SELECT count(*) FROM audit")
    }
  }

  @Test func `the entries go into a file, the head into the next entry, and both still verify`() throws {
    let device = try device()
    let all = try device.ledger.auditEntries(limit: 100)
    let end = try cut(device, before: 15)
    #expect(end.count == 14)
    let kept = try device.ledger.auditEntries(limit: 100)
    #expect(kept.dropLast() == all.suffix(6))
    #expect(kept.last == AuditEntry(sequence: 21, time: testTime + 7, event: .logCut(end)))
    #expect(try rowCount(device) == 7)
    let report = try device.ledger.verifyAudit()
    #expect(report == AuditReport(recorded: try device.ledger.summary().audit, firstKept: 15, firstBroken: nil))
    let archive = try AuditArchive(path: device.place.file("cut"))
    #expect(archive.auditEntries(after: 0, limit: 100) == Array(all.prefix(14)))
    #expect(archive.auditEntries(after: 12, limit: 1).map(\.sequence) == [13])
    #expect(archive.deviceID == device.folder.descriptor.deviceID && archive.base == AuditChain())
    #expect(try archive.verifyAudit() == AuditReport(recorded: end, firstKept: 1, firstBroken: nil))
    try device.reopenLedger()
    #expect(try device.ledger.verifyAudit() == report)
    // The second file goes on where the first ended.
    let next = try cut(device, before: 21, "next")
    #expect(try AuditArchive(path: device.place.file("next")).base == end)
    #expect(try device.ledger.verifyAudit().firstBroken == nil && next.count == 20)
    #expect(try device.connect().round(try device.prover()).status == .accepted)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  /// Entries are read 512 at a time.
  @Test(arguments: [512, 513, 1024, 1025] as [UInt64])
  func `of a long log, every entry before the cut goes into the file`(count: UInt64) throws {
    let device = try device(entries: 2)
    try add(1100, to: device.ledger)
    #expect(try cut(device, before: count + 1).count == count)
    #expect(try AuditArchive(path: device.place.file("cut")).entries.count == Int(count))
  }

  @Test func `parts have at most the bytes that were asked for, follow each other, and may be cut off`() throws {
    let device = try device()
    try add(180, to: device.ledger)
    let parts = try device.ledger.auditParts(before: 150, byteCount: 4096)
    #expect(parts.count > 1)
    #expect(parts.allSatisfy { $0.encoded().count <= 4096 })
    #expect(parts.flatMap(\.entries).count == 149)
    var end = AuditChain()
    for part in parts {
      #expect(part.base == end)
      #expect(try part.verifyAudit().firstBroken == nil)
      end = part.end
      let path = device.place.file("part-\(end.count)")
      try device.ledger.write(part, to: path, isCut: true, realClock: testTime)
      #expect(try AuditArchive(path: path).encoded() == part.encoded())
    }
    #expect(try device.ledger.auditEntries(limit: 1).first?.sequence == 150)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
    #expect(throws: AuditCutFault.alreadyCut(firstKept: 150)) {
      try device.ledger.auditParts(before: 150, byteCount: 4096)
    }
    #expect(throws: AuditCutFault.self) { try device.ledger.auditParts(before: .max, byteCount: 4096) }
    // An entry that is longer than that is a part by itself.
    #expect(try device.ledger.auditParts(before: 153, byteCount: 1).map(\.entries.count) == [1, 1, 1])
  }

  @Test func `a notice comes once at nine tenths of the bound, and again only after there were fewer`() throws {
    let device = try device(entries: 10)
    let open = try device.opened()
    defer { open.close() }
    let ledger = open.ledger
    try add(900, to: ledger)
    #expect(ledger.takeAuditNotice() == nil)
    ledger.auditRules.bound = 1000
    let notice = try #require(ledger.takeAuditNotice())
    #expect(notice == (try ledger.summary().keptAuditCount, 1000))
    try add(1, to: ledger)
    #expect(ledger.takeAuditNotice() == nil)
    try ledger.cutAudit(before: 500, to: device.place.file("cut"), realClock: testTime)
    try add(1, to: ledger)
    #expect(ledger.takeAuditNotice() == nil)
    try add(500, to: ledger)
    #expect(ledger.takeAuditNotice() != nil)
  }

  @Test func `a device that is served says once that its log is nearly full`() throws {
    let device = try device()
    try add(900, to: device.ledger)
    var policy = DevicePolicy.forSimulatedLock
    policy.auditRules.bound = 1000
    try device.folder.write(policy)
    let served = try ServedDevice(device)
    let peers = try (0..<64).map { _ in try served.connect() }
    let prover = try device.prover()
    for peer in peers { #expect(try peer.round(prover, "status").status == .accepted) }
    let kept = try device.ledger.summary().keptAuditCount
    // The device looks every minute, and whenever it has no room for a peer.
    for _ in 0..<2 { #expect(try served.connect().unsealedStatus() == .busy) }
    #expect(kept > 920 && served.notices.wait(for: .auditLogNearlyFull(kept: kept, bound: 1000)))
    try served.stop()
    #expect(served.notices.all.count { if case .auditLogNearlyFull = $0 { true } else { false } } == 1)
  }

  @Test func `the file of an earlier cut is not taken for that of the last one`() throws {
    let device = try device()
    _ = try cut(device, before: 5, "first")
    let end = try cut(device, before: 15, "second")
    #expect(throws: AuditCutFault.alreadyCut(firstKept: 15)) { try cut(device, before: 15, "first") }
    #expect(try cut(device, before: 15, "second") == end)
  }

  @Test func `what cannot be cut is refused, and nothing is changed`() throws {
    let device = try device()
    let before = try device.ledger.summary()
    #expect(throws: AuditCutFault.beyondEnd(last: 20)) { try cut(device, before: 21) }
    #expect(throws: AuditCutFault.beyondEnd(last: 20)) { try cut(device, before: .max) }
    #expect(throws: AuditCutFault.alreadyCut(firstKept: 1)) { try cut(device, before: 1) }
    #expect(throws: AuditCutFault.alreadyCut(firstKept: 1)) { try cut(device, before: 0) }
    try Files.writeFileAtomically([1], at: device.place.file("taken"), overwrite: false)
    #expect(throws: AuditCutFault.file(FileError(.exists, at: device.place.file("taken")))) {
      try cut(device, before: 5, "taken")
    }
    #expect(throws: AuditCutFault.self) { try cut(device, before: 5, "no/such/folder") }
    #expect(try device.ledger.summary() == before)
    _ = try cut(device, before: 5)
    #expect(throws: AuditCutFault.alreadyCut(firstKept: 5)) { try cut(device, before: 4, "other") }
    #expect(throws: AuditCutFault.alreadyCut(firstKept: 5)) { try cut(device, before: 5, "other") }
    try device.tamper("UPDATE audit SET entry = x'00' WHERE sequence = 9")
    #expect(throws: AuditCutFault.broken(sequence: 9)) { try cut(device, before: 12, "broken") }
    #expect(throws: FileError.self) { try Files.readFile(at: device.place.file("broken"), limit: 1 << 20) }
  }

  @Test func `entries that are gone cannot be cut, and the first of them is named`() throws {
    let device = try device()
    try device.tamper("DELETE FROM audit WHERE sequence >= 9")
    #expect(throws: AuditCutFault.broken(sequence: 9)) { try cut(device, before: 12) }
    #expect(throws: AuditCutFault.broken(sequence: 9)) {
      try device.ledger.auditParts(before: nil, byteCount: 4096)
    }
    #expect(throws: FileError.self) { try Files.readFile(at: device.place.file("cut"), limit: 1 << 20) }
  }

  @Test func `after a power cut behind the file the same call finishes, and after the end it does nothing`() throws {
    let device = try device()
    try device.copyFolder(to: "before")
    let end = try cut(device, before: 15)
    let after = try device.ledger.summary()
    #expect(try cut(device, before: 15) == end)
    #expect(try device.ledger.summary() == after)
    // The file is there, and the transaction never was.
    try device.restoreFolder(from: "before")
    try device.reopenLedger()
    #expect(try device.ledger.auditEntries(limit: 100).count == 20)
    #expect(try cut(device, before: 15) == end)
    #expect(try device.ledger.verifyAudit().firstKept == 15)
    // Another file of that name is somebody else's.
    #expect(throws: AuditCutFault.self) { try cut(device, before: 17) }
    #expect(try device.ledger.verifyAudit().firstKept == 15)
  }

  @Test func `entries that a power cut left behind the cut are not looked at, and go later`() throws {
    let device = try device()
    let left = try device.ledger.read { (tables) throws(DatabaseError) in try tables.auditRows(after: 9, limit: 1)[0] }
    _ = try cut(device, before: 15)
    try device.tamper("INSERT INTO audit VALUES (10, x'00', x'00')")
    #expect(left.sequence == 10)
    #expect(try device.ledger.auditEntries(limit: 100).first?.sequence == 15)
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
    device.ledger.dropCutEntries()
    #expect(try rowCount(device) == 7)
  }

  @Test func `a log whose beginning was moved by somebody else is broken`() throws {
    let device = try device()
    let hash = try device.ledger.read { (tables) throws(DatabaseError) in
      try tables.auditRows(after: 9, limit: 1)[0].hash
    }
    try device.tamper("UPDATE state SET audit_base_count = 10")
    try device.tamper("UPDATE state SET audit_base_head = ?", .bytes(hash))
    #expect(try device.ledger.verifyAudit().firstBroken == 11)
    let cutAgain = try self.device()
    _ = try cut(cutAgain, before: 5)
    try cutAgain.tamper("UPDATE state SET audit_base_head = zeroblob(32)")
    #expect(try cutAgain.ledger.verifyAudit().firstBroken == 5)
  }

  @Test func `a file that was changed anywhere is found or refused`() throws {
    let device = try device(entries: 8)
    _ = try cut(device, before: 6)
    let bytes = try Files.readFile(at: device.place.file("cut"), limit: 1 << 20)
    #expect(try AuditArchive(bytes).encoded() == bytes)
    var soundCount = 0
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1
      guard let archive = try? AuditArchive(changed) else { continue }
      // Which device's log it is stands outside of the chain.
      if try archive.verifyAudit().firstBroken == nil {
        soundCount += 1
        #expect(archive.deviceID != device.folder.descriptor.deviceID)
      }
      #expect(throws: AuditArchiveFault.self) { try AuditArchive(Array(bytes.prefix(index))) }
    }
    #expect(soundCount <= 32)
    let newer = Array(String(decoding: bytes, as: UTF8.self).replacing("audit\":1", with: "audit\":2").utf8)
    #expect(throws: AuditArchiveFault.newerVersion) { try AuditArchive(newer) }
    for text in ["", "\n", "{}\n{}\n", "[1]\n[2]\n"] {
      #expect(throws: AuditArchiveFault.malformed) { try AuditArchive(Array(text.utf8)) }
    }
  }

  @Test func `policy bounds the log: the oldest go behind a recorded head`() throws {
    let device = try device(entries: 100)
    device.ledger.auditRules.bound = 64
    for _ in 0..<200 {
      try device.ledger.record(.stopped, realClock: testTime)
      let report = try device.ledger.verifyAudit()
      #expect(report.firstBroken == nil && report.recorded.count - report.firstKept + 1 <= 64)
      #expect(try rowCount(device) ?? .max <= 64)
    }
    let cuts = try device.ledger.auditEntries(limit: 100).compactMap { entry -> UInt64? in
      if case .logCut(let chain) = entry.event { chain.count } else { nil }
    }
    let report = try device.ledger.verifyAudit()
    #expect(cuts.last == report.firstKept - 1 && report.recorded.count > 300)
    device.ledger.auditRules.bound = nil
    for _ in 0..<100 { try device.ledger.record(.stopped, realClock: testTime) }
    #expect(try device.ledger.verifyAudit().firstKept == report.firstKept)
  }

  @Test func `a log much longer than a new bound is shortened at once, and its rows go bit by bit`() throws {
    let device = try device(entries: 3000)
    device.ledger.auditRules.bound = 1000
    try device.ledger.record(.stopped, realClock: testTime)
    let report = try device.ledger.verifyAudit()
    #expect(report.firstBroken == nil && report.recorded.count - report.firstKept < 1000)
    #expect(try rowCount(device) ?? 0 > 1500)
    device.ledger.dropCutEntries()
    #expect(try rowCount(device) == report.recorded.count - report.firstKept + 1)
  }
}
