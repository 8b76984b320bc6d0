import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastStorage
import TestSupport
import Testing

import HoldfastDevice

@Suite struct LedgerAnchorTests {
  private let tpm = FakeTPM()

  private func count(_ device: TestDevice) throws -> UInt64 { try #require(tpm.count(at: device.folder.counter)) }

  private func epoch(_ device: TestDevice) throws -> UInt64? {
    try device.ledger.look { tables throws(DatabaseError) in try tables.state().epoch }
  }

  @Test func `every write raises the epoch and the counter by one, and the first of a process by two`() throws {
    let device = try TestDevice(tpm: tpm)
    let connection = try device.connect()
    let prover = try device.prover { ($0.generation, $0.maximumUses) = (3, 2) }
    let fresh = try device.prover { ($0.generation, $0.issuedAt) = (3, testTime + 1) }
    let keyID = try device.issuer.keyID()
    let writes: [() throws -> Void] = [
      { _ = try connection.round(prover) },
      { _ = try connection.round(fresh, flaws: .wrongIntegrity) },
      { try device.ledger.moveClockFloor(to: testTime + 5, realClock: nil) },
      { try device.ledger.moveGenerationFloor(of: keyID, to: 9, realClock: nil) },
      { try device.ledger.removeTrust(keyID, realClock: nil) },
      { _ = try device.ledger.start(realClock: nil) },
      { try device.ledger.notePolicy(nil, realClock: nil) },
      { try device.ledger.record(.stopped, realClock: nil) },
    ]
    for write in writes {
      let before = try count(device)
      #expect(try epoch(device) == before)
      try write()
      #expect(try count(device) == before + 1)
      #expect(try epoch(device) == before + 1)
    }
    try device.reopenLedger()
    let before = try count(device)
    try device.ledger.record(.stopped, realClock: nil)
    #expect(try count(device) == before + 2)
    #expect(try epoch(device) == before + 2)
  }

  @Test func `without an anchor there is no epoch, and nothing to be asked`() throws {
    let device = try TestDevice()
    #expect(try device.connect().round(try device.prover()).status == .accepted)
    #expect(try epoch(device) == nil)
    #expect(device.folder.counter == nil)
  }

  @Test func `an old copy of the folder is rolled back, and the newest one has forgotten nothing`() throws {
    let device = try TestDevice(tpm: tpm)
    let prover = try device.prover { $0.maximumUses = 1 }
    let removed = try TestIssuer()
    try device.ledger.trust(.signing(removed.point), realClock: nil)
    try device.copyFolder(to: "old")
    #expect(try device.connect().round(prover).status == .accepted)
    try device.copyFolder(to: "used")
    try device.ledger.removeTrust(try removed.keyID(), realClock: nil)
    try device.copyFolder(to: "newest")
    for copy in ["old", "used"] {
      try device.restoreFolder(from: copy)
      #expect(throws: DeviceFolderFault.file(.ledger, .rolledBack)) { try device.reopenLedger() }
      #expect(throws: DeviceFolderFault.file(.ledger, .rolledBack)) { try ServedDevice(device) }
    }
    try device.restoreFolder(from: "newest")
    try device.reopenLedger()
    #expect(try device.connect().round(prover).status == .usesExhausted)
    #expect(try device.ledger.issuers().count == 1)
  }

  @Test(arguments: [-2, -1, 0, 1, 2])
  func `a ledger one ahead is caught up with, and any other but its own is refused`(ahead: Int64) throws {
    let device = try TestDevice(tpm: tpm)
    for _ in 0..<3 { try device.ledger.record(.stopped, realClock: nil) }
    let before = try count(device)
    try device.tamper("UPDATE state SET epoch = epoch + ?", .integer(ahead))
    if ahead == 0 || ahead == 1 {
      try device.reopenLedger()
      #expect(try count(device) == before + UInt64(ahead))
      #expect(try epoch(device) == before + UInt64(ahead))
    } else {
      #expect(throws: DeviceFolderFault.file(.ledger, .rolledBack)) { try device.reopenLedger() }
      #expect(try count(device) == before)
      // Also where that is done while it is served.
      #expect(try device.connect().round(try device.prover()).status == .internal)
      #expect(throws: LedgerFault.rolledBack) { try device.ledger.moveClockFloor(to: 1, realClock: nil) }
      #expect(device.lock.current == .locked)
      #expect(try count(device) == before)
    }
  }

  /// The calls of a write are: read, increment; the first one, and one after a failure, has a write before it.
  @Test(arguments: 1...8, [false, true])
  func `whichever call to the counter fails, nothing moves, and the next round goes on`(call: Int, isDone: Bool) throws
  {
    let device = try TestDevice(tpm: tpm)
    let prover = try device.prover { $0.maximumUses = 3 }
    try device.reopenLedger()
    let connection = try device.connect()
    tpm.fail(FakeTPM.Failure(call: call, isDone: isDone))
    var acceptedCount = 0
    for _ in 0..<3 {
      try device.lock.move(to: .locked)
      let status = try connection.round(prover).status
      #expect(status == .accepted || status == .internal)
      #expect(device.lock.current == (status == .accepted ? .unlocked : .locked))
      if status == .accepted { acceptedCount += 1 }
    }
    #expect(tpm.calls >= call)
    #expect(acceptedCount == 2)
    let next = try connection.round(prover).status
    #expect([.accepted, .usesExhausted].contains(next))
    tpm.fail(nil)
    try device.reopenLedger()
    #expect(try epoch(device) == count(device))
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
    if next == .accepted { #expect(try device.connect().round(prover).status == .usesExhausted) }
  }

  @Test func `while the TPM is away nothing is accepted, and when it is back it goes on`() throws {
    let device = try TestDevice(tpm: tpm)
    let served = try ServedDevice(device)
    let peer = try served.connect()
    let prover = try device.prover { $0.maximumUses = 2 }
    #expect(try peer.round(prover).status == .accepted)
    tpm.fail(FakeTPM.Failure(call: 1, isLasting: true, fault: .notThere))
    for _ in 0..<3 { #expect(try peer.round(prover, "lock").status == .internal) }
    #expect(throws: DeviceFolderFault.counter(.notThere)) { try device.reopenLedger() }
    #expect(throws: LedgerFault.counter(.notThere)) { try device.ledger.moveClockFloor(to: 1, realClock: nil) }
    tpm.fail(nil)
    #expect(try peer.round(prover).status == .accepted)
    #expect(try peer.round(prover).status == .usesExhausted)
    try served.stop()
    try device.reopenLedger()
  }

  @Test func `a write that was cut off is no second branch to come back to`() throws {
    let device = try TestDevice(tpm: tpm)
    let prover = try device.prover { $0.maximumUses = 1 }
    try device.ledger.record(.stopped, realClock: nil)
    try device.copyFolder(to: "before")
    // The increment.
    tpm.fail(FakeTPM.Failure(call: 2))
    #expect(throws: LedgerFault.counter(.silent)) { try device.ledger.moveClockFloor(to: testTime + 1, realClock: nil) }
    tpm.fail(nil)
    try device.copyFolder(to: "cut off")
    try device.restoreFolder(from: "before")
    try device.reopenLedger()
    #expect(try device.connect().round(prover).status == .accepted)
    try device.restoreFolder(from: "cut off")
    #expect(throws: DeviceFolderFault.file(.ledger, .rolledBack)) { try device.reopenLedger() }
  }

  @Test(arguments: [false, true])
  func `what was cut off, here or elsewhere, is no second branch of a ledger in use`(isHere: Bool) throws {
    let device = try TestDevice(tpm: tpm)
    try device.ledger.record(.stopped, realClock: nil)
    let ledger = isHere ? device.ledger : try device.folder.openLedger()
    // The increment; a ledger that has not written yet has a write before.
    tpm.fail(FakeTPM.Failure(call: isHere ? 2 : 4))
    #expect(throws: LedgerFault.counter(.silent)) { try ledger.moveClockFloor(to: testTime + 1, realClock: nil) }
    tpm.fail(nil)
    let cutOff = try #require(try epoch(device))
    // The ledger is put back to what was counted.
    try device.tamper("UPDATE state SET epoch = epoch - 1")
    try device.ledger.record(.stopped, realClock: nil)
    #expect(try count(device) == cutOff + 1)
  }

  @Test func `two ledgers of one folder that write at once stay in step`() throws {
    let device = try TestDevice(tpm: tpm)
    let before = try device.ledger.summary().audit.count
    let perThread = 150
    let flags = try (0..<4).map { _ in try WakeUp() }
    let shared = try device.folder.openLedger()
    for (number, flag) in flags.enumerated() {
      let ledger = number < 2 ? shared : try device.folder.openLedger()
      let isStarted = Thread.detach {
        for _ in 0..<perThread { try? ledger.record(.stopped, realClock: nil) }
        flag.raise()
      }
      #expect(isStarted)
    }
    for flag in flags { flag.wait(milliseconds: nil) }
    try device.reopenLedger()
    #expect(try device.ledger.summary().audit.count == before + UInt64(4 * perThread))
    #expect(try epoch(device) == count(device))
    #expect(try device.ledger.verifyAudit().firstBroken == nil)
  }

  @Test func `a ledger of another device is not counted for`() throws {
    let device = try TestDevice(tpm: tpm)
    let other = try TestDevice(seed: 2, tpm: tpm)
    let before = try count(device)
    try other.tamper("UPDATE state SET epoch = ?", .unsigned(before + 1))
    try device.copyFolder(to: "own")
    for suffix in ["", "-wal", "-shm"] {
      let file = device.folder.path + "/ledger.sqlite" + suffix
      try? FileManager.default.removeItem(atPath: file)
      try? FileManager.default.copyItem(atPath: other.folder.path + "/ledger.sqlite" + suffix, toPath: file)
    }
    #expect(throws: DeviceFolderFault.file(.ledger, .otherDevice)) { try device.reopenLedger() }
    #expect(try count(device) == before)
    try device.restoreFolder(from: "own")
    try device.reopenLedger()
  }

  @Test func `a counter that somebody else defined anew is refused`() throws {
    let device = try TestDevice(tpm: tpm)
    tpm.put(at: try #require(device.folder.counter).index)
    #expect(throws: DeviceFolderFault.counter(.notOurs)) { try device.reopenLedger() }
    #expect(try device.connect().round(try device.prover()).status == .internal)
  }
}
