import Foundation
import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import TestSupport
import Testing

import HoldfastDevice

@Suite struct DeviceResetTests {
  private func reset(_ device: TestDevice, seed: UInt64 = 2) throws(DeviceFolderFault) -> DeviceFolder {
    var random = TestRandom(state: seed)
    return try DeviceFolder.reset(at: device.folder.path, random: &random, clock: device.clock)
  }

  @Test func `a reset device is another one that trusts nobody, and its audit log goes on`() throws {
    let device = try TestDevice()
    let connection = try device.connect()
    let prover = try device.prover { ($0.generation, $0.maximumUses, $0.issuedAt) = (7, 3, testTime + 600) }
    #expect(try connection.round(prover).status == .accepted)
    #expect(try device.openedLock() == .unlocked)
    let before = try device.ledger.summary()
    device.clock.seconds = testTime + 60

    let folder = try reset(device)
    #expect(folder.descriptor.deviceID != device.folder.descriptor.deviceID)
    #expect(folder.descriptor.keyID != device.folder.descriptor.keyID)
    #expect(try DeviceFolder.open(at: folder.path).descriptor == folder.descriptor)
    let ledger = try folder.openLedger()
    let after = try ledger.summary()
    #expect(try ledger.issuers().isEmpty)
    #expect((after.keptCount, after.clockFloor) == (0, testTime + 60))
    #expect(after.bootCount == before.bootCount)
    #expect(after.audit.count == before.audit.count + 1)
    let last = try ledger.auditEntries(after: before.audit.count, limit: 1).first
    #expect(last?.event == .reset(folder.descriptor.deviceID))
    #expect(try ledger.verifyAudit().firstBroken == nil)
    #expect(try folder.openLock().current == .locked)
    #expect(try folder.policy(of: ledger).read().policy == device.policy)
    try ledger.trust(.signing(device.issuer.point), realClock: testTime)
    #expect(try ledger.issuers().map(\.generationFloor) == [0])
  }

  @Test func `a device that is served is not reset`() throws {
    let device = try TestDevice()
    let served = try ServedDevice(device)
    #expect(throws: DeviceFolderFault.folder(FileError(.locked, at: device.folder.path))) { try reset(device) }
    try served.stop()
    #expect(try DeviceFolder.open(at: device.folder.path).descriptor == device.folder.descriptor)
    _ = try reset(device)
  }

  @Test(arguments: [DeviceFile.description, .key, .actuator, .policy])
  func `a device that lost a file is reset all the same, as long as its ledger is whole`(lost: DeviceFile) throws {
    let device = try TestDevice()
    try FileManager.default.removeItem(atPath: lost.path(in: device.folder.path))
    let folder = try reset(device)
    #expect(try DeviceFolder.open(at: folder.path).descriptor == folder.descriptor)
    _ = try folder.openLedger()
    #expect(try folder.openLock().current == .locked)
    #expect(try folder.policy(of: folder.openLedger()).read().fault == (lost == .policy ? .unreadable : nil))
  }

  @Test func `a device whose key file is damaged is not reset, because its key may be in a TPM`() throws {
    let device = try TestDevice()
    let path = DeviceFile.key.path(in: device.folder.path)
    for damaged in ["", "{}", #"{"tpm": 1}"#] {
      try Data(damaged.utf8).write(to: URL(fileURLWithPath: path))
      #expect(throws: DeviceFolderFault.file(.key, .corrupt)) { try reset(device) }
    }
    #expect(try device.ledger.summary().audit.count == 2)
    try FileManager.default.removeItem(atPath: path)
    _ = try reset(device)
  }

  @Test func `without a whole ledger nothing is reset`() throws {
    let device = try TestDevice()
    let path = DeviceFile.ledger.path(in: device.folder.path)
    try Data("no database".utf8).write(to: URL(fileURLWithPath: path))
    #expect(throws: DeviceFolderFault.file(.ledger, .database(.corrupt))) { try reset(device) }
    try FileManager.default.removeItem(atPath: path)
    #expect(throws: DeviceFolderFault.file(.ledger, .file(FileError(.notFound, at: path)))) { try reset(device) }
    #expect(try DeviceFolder.open(at: device.folder.path).descriptor == device.folder.descriptor)
    try FileManager.default.removeItem(atPath: device.folder.path)
    #expect(throws: DeviceFolderFault.folder(FileError(.notFound, at: device.folder.path))) { try reset(device) }
  }

  @Test func `a folder that is not the owner's alone, or holds nothing, is not reset`() throws {
    let device = try TestDevice()
    let path = device.folder.path
    let manager = FileManager.default
    try manager.setAttributes([.posixPermissions: 0o750], ofItemAtPath: path)
    #expect(throws: DeviceFolderFault.folder(FileError(.tooOpen(mode: 0o750), at: path))) { try reset(device) }
    try manager.moveItem(atPath: path, toPath: path + ".moved")
    try manager.createSymbolicLink(atPath: path, withDestinationPath: path + ".moved")
    #expect(throws: DeviceFolderFault.folder(FileError(.symbolicLink, at: path))) { try reset(device) }
    try manager.removeItem(atPath: path)
    try manager.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    #expect(throws: DeviceFolderFault.missing) { try reset(device) }
    #expect(try manager.contentsOfDirectory(atPath: path).isEmpty)
  }

  @Test func `a description that cannot be removed leaves the ledger as it was`() throws {
    let device = try TestDevice()
    let description = DeviceFile.description.path(in: device.folder.path)
    try FileManager.default.removeItem(atPath: description)
    try FileManager.default.createDirectory(atPath: description, withIntermediateDirectories: false)
    let before = try device.ledger.summary()
    #expect(throws: DeviceFolderFault.file(.description, .file(FileError(.isDirectory, at: description)))) {
      try reset(device)
    }
    #expect(try device.ledger.summary() == before)
    #expect(try device.ledger.issuers().count == 1)
  }

  @Test func `a reset whose key cannot be written leaves no description, and can be done again`() throws {
    let device = try TestDevice()
    let path = device.folder.path
    let key = DeviceFile.key.path(in: path)
    // It was read by then, and nothing can be put in its place.
    var random = IntrusiveRandom {
      try? FileManager.default.removeItem(atPath: key)
      try? FileManager.default.createDirectory(atPath: key, withIntermediateDirectories: false)
    }
    #expect(throws: DeviceFolderFault.self) {
      _ = try DeviceFolder.reset(at: path, random: &random, clock: device.clock)
    }
    #expect(!FileManager.default.fileExists(atPath: DeviceFile.description.path(in: path)))
    try FileManager.default.removeItem(atPath: key)
    let folder = try reset(device)
    #expect(try DeviceFolder.open(at: path).descriptor == folder.descriptor)
  }

  @Test func `after a reset, the log of the ledger's writes is empty, even while another process has the ledger open`()
    throws
  {
    let device = try TestDevice()
    #expect(try device.connect().round(try device.prover()).status == .accepted)
    let log = DeviceFile.ledger.path(in: device.folder.path) + "-wal"
    func byteCount() throws -> Int { try Data(contentsOf: URL(filePath: log)).count }
    #expect(try byteCount() > 0)
    _ = try reset(device)
    #expect(try byteCount() == 0)
  }

  @Test func `what a token had used up before a reset is no other device's`() throws {
    var policy = DevicePolicy.forSimulatedLock
    policy.commands[BoundedText("unlock")]?.allowsCompatibility = true
    let device = try TestDevice(policy: policy)
    let nonce = [UInt8](repeating: 1, count: 16)
    func use(_ device: TestDevice) throws {
      let connection = try device.connect()
      let prover = try device.prover { $0.maximumUses = 2 }
      #expect(try connection.round(prover).status == .accepted)
      #expect(try connection.compatibilityRound(prover, nonce: nonce) == .accepted)
      #expect(try connection.round(prover).status == .usesExhausted)
    }
    try use(device)
    _ = try reset(device)
    let after = try TestDevice(opening: device.folder.path, in: device.place, issuer: device.issuer)
    try after.ledger.trust(.signing(device.issuer.point), realClock: testTime)
    try use(after)
  }

  @Test func `the policy of a reset device is entered anew`() throws {
    let device = try TestDevice()
    let digest = Digest(filledWith: 8)
    try device.ledger.notePolicy(digest, realClock: testTime)
    let ledger = try reset(device).openLedger()
    try ledger.notePolicy(digest, realClock: testTime)
    #expect(try ledger.auditEntries(limit: 10).last?.event == .policySeen(digest))
  }

  @Test func `without a clock nothing is reset`() throws {
    let device = try TestDevice()
    device.clock.seconds = nil
    #expect(throws: DeviceFolderFault.failed) { try reset(device) }
    #expect(try DeviceFolder.open(at: device.folder.path).descriptor == device.folder.descriptor)
  }
}

extension TestDevice {
  fileprivate func openedLock() throws -> LockState { try folder.openLock().current }
}
