import Foundation
import HoldfastCore
import PowerCut
import TestSupport

import HoldfastDevice

/// The changes of the disk by a device's reset, and the contents that are right after a power cut in it.
struct ResetRecording {
  let changes: [DiskChange]
  /// How many changes were made before the reset.
  let changeCountBefore: Int
  private let old: DeviceID
  private let auditCount: UInt64
  private let place: TemporaryFolder

  init() throws {
    let recorded = try TemporaryFolder(in: memoryFolder)
    let script = DeviceScript(in: recorded, issuers: [try TestIssuer()])
    let recorder = try DiskRecorder(folder: recorded.path)
    try recorder.recording {
      try script.make()
      for step in [DeviceStep.open, .trust(0), .start, .round("accepted", "unlock", token: DeviceStep.oneUse)] {
        _ = try step.run(script)
      }
    }
    old = script.device.folder.descriptor.deviceID
    auditCount = try script.device.ledger.summary().audit.count
    changeCountBefore = recorder.changes.count
    try recorder.recording { _ = try Self.reset(script.path, seed: 2) }
    changes = recorder.changes
    place = try TemporaryFolder(in: memoryFolder)
  }

  private static func reset(_ path: String, seed: UInt64) throws(DeviceFolderFault) -> DeviceFolder {
    var random = TestRandom(state: seed)
    return try DeviceFolder.reset(at: path, random: &random, clock: TestClock())
  }

  /// Whether the reset had begun after that many changes.
  func stage(after changeCount: Int) -> Int { changeCount < changeCountBefore ? 0 : 1 }

  /// The fault of the device after `cut`; nil if there is none.
  func fault(_ cut: PowerCut) throws -> String? {
    let path = place.path + "/device"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try cut.image.write(to: place.path)
    do {
      return try fault(try DeviceFolder.open(at: path), isDone: cut.changeCount == changes.count)
    } catch DeviceFolderFault.incomplete {
      if cut.changeCount == changes.count { return "is not whole after its reset was done" }
      let again = try Self.reset(path, seed: 3)
      return try fault(again, isDone: true)
    } catch let fault as DeviceFolderFault { return "cannot be opened: \(fault)" }
  }

  private func fault(_ folder: DeviceFolder, isDone: Bool) throws -> String? {
    let ledger = try folder.openLedger()
    guard try ledger.verifyAudit().firstBroken == nil else { return "has a broken audit chain" }
    let isOld = folder.descriptor.deviceID == old
    let (trusts, kept) = (try ledger.issuers().count, try ledger.summary().keptCount)
    let lock = try folder.openLock().current
    if isOld {
      if isDone { return "is the old one after its reset was done" }
      return trusts == 1 && kept == 1 && lock == .unlocked ? nil : "is the old one, and has forgotten something"
    }
    guard trusts == 0, kept == 0, lock == .locked else { return "is the new one, and has not forgotten everything" }
    return try ledger.summary().audit.count > auditCount ? nil : "has no entry for its reset"
  }
}
