import HoldfastCore
import PowerCut
import TestSupport

import HoldfastDevice

/// A device's life on a disk of which one operation fails, or all from one on.
struct DeviceOnFailingDisk {
  let script: DeviceScript
  let recorder: DiskRecorder
  let afterPowerCut: DeviceAfterPowerCut
  let seen: SeenDisks
  private var disk: Disk
  private var appliedCount = 0
  /// The contents of the device, as the running process has them.
  private var contents: DeviceContents?
  /// Where the lock may stand: a move that failed may be done or not.
  private var locks: [LockState]
  /// Whether nothing has failed since the last record.
  private var isSettled = true

  /// Goes on from `disk`, where the lock may stand as `locks` says.
  init(
    _ disk: Disk, locks: [LockState] = [.locked], fault: DiskFault? = nil, issuers: [TestIssuer],
    afterPowerCut: DeviceAfterPowerCut, seen: SeenDisks = SeenDisks()
  ) throws {
    (self.disk, self.locks) = (disk, locks)
    let place = try TemporaryFolder(in: memoryFolder)
    script = DeviceScript(in: place, issuers: issuers)
    recorder = try DiskRecorder(folder: place.path, continuing: disk)
    recorder.fault = fault
    self.afterPowerCut = afterPowerCut
    self.seen = seen
  }

  /// Lives through `steps`, whatever comes of them, then goes on after the fault. Says what is wrong; nil when nothing is.
  mutating func fault(in steps: [DeviceStep]) throws -> String? {
    var isHit = false
    for step in steps {
      if let fault = try fault(in: step) { return "\(step.name): \(fault)" }
      // The first record after the fault; the end is looked at in any case.
      let hasFault = recorder.fault.map { recorder.operationCount > $0.operation } ?? false
      if hasFault, !isHit, isSettled {
        isHit = true
        if let fault = try faultAfterPowerCut() { return "after \(step.name): the device \(fault)" }
      }
    }
    if let fault = try faultAfterPowerCut() { return "in the end: the device \(fault)" }
    recorder.fault = nil
    let last = DeviceStep.round("once the fault is gone", "unlock") {
      ($0.generation, $0.expires) = (9, testTime + 900_000)
    }
    // A step of its own: the first trust may have failed.
    _ = try fault(in: .trust(0))
    if let fault = try fault(in: last) { return "\(last.name): \(fault)" }
    guard isSettled else { return "does not go on once the fault is gone" }
    return try faultAfterPowerCut().map { "once the fault is gone: the device \($0)" }
  }

  private func acknowledges(_ step: DeviceStep) throws -> Bool {
    do {
      if !script.isOpen { try script.open() }
      return try step.run(script)
    } catch { return false }
  }

  private mutating func fault(in step: DeviceStep) throws -> String? {
    let operationCount = recorder.operationCount
    let isAcknowledged = try recorder.recording { try acknowledges(step) }
    guard script.isOpen else {
      isSettled = false
      return nil
    }
    let before = contents
    let now = try DeviceContents(script.device)
    contents = now
    if !step.isRecorded, isAcknowledged, let before {
      // Totals may have been due, and their record may have failed.
      if recorder.operationCount != operationCount { isSettled = now.tables != before.tables }
      return now.lock == before.lock ? nil : "the lock moved without a record"
    }
    if isAcknowledged {
      isSettled = true
      guard let target = step.target else { return nil }
      locks = [target]
      return now.lock == target ? nil : "the lock was said to have moved, and has not"
    }
    isSettled = false
    if !locks.contains(now.lock) { locks.append(now.lock) }
    if let target = step.target, !locks.contains(target), now.tables != before?.tables { locks.append(target) }
    guard let before, now.lock != before.lock, now.tables == before.tables else { return nil }
    return "the lock moved without a record"
  }

  /// Looks at what the disk would hold if the process were killed now, and if the power were cut.
  private mutating func faultAfterPowerCut() throws -> String? {
    for change in recorder.changes[appliedCount...] { disk.apply(change) }
    appliedCount = recorder.changes.count
    let (contents, locks, isSettled) = (contents, locks, isSettled)
    for survival in [Survival.all, .none] {
      let image = disk.image(after: survival)
      guard seen.isNew(image, contents?.tables, locks, isSettled) else { continue }
      let fault = try afterPowerCut.fault(image) { found in
        guard let contents else { return nil }
        guard locks.contains(found.lock) else { return "finds its lock \(found.lock), surviving: \(survival)" }
        let isRight = isSettled ? found.tables == contents.tables : found.forgetsNothing(of: contents)
        return isRight ? nil : "differs in \(found.differences(from: contents)), surviving: \(survival)"
      }
      if let fault { return fault }
    }
    return nil
  }
}

/// The disks that were looked at, each with what had to be found on it. Many faults leave the same.
final class SeenDisks {
  private var hashes: Set<Int> = []

  /// Whether no disk like this was looked at before.
  func isNew(_ image: DiskImage, _ tables: [String: [String]]?, _ locks: [LockState], _ isSettled: Bool) -> Bool {
    var hasher = Hasher()
    hasher.combine(image)
    hasher.combine(tables)
    hasher.combine(locks)
    hasher.combine(isSettled)
    return hashes.insert(hasher.finalize()).inserted
  }
}
