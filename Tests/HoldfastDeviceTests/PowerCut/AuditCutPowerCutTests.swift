import HoldfastCore
import HoldfastFormats
import PowerCut
import TestSupport
import Testing

import HoldfastDevice

/// The power is cut after each change of the disk while the owner cuts the audit log.
@Suite struct AuditCutPowerCutTests {
  @Test func `a power cut at any point of a cut loses no entry, and the same call finishes`() throws {
    let recording = try AuditCutRecording()
    var faults: [String] = []
    try PowerCuts(recording.changes).forEach(stage: recording.stage) { cut in
      guard faults.count < 5, recording.stage(after: cut.changeCount) == 1 else { return }
      if let fault = try recording.fault(cut) { faults.append("\(cut): the device \(fault)") }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }
}

/// The changes of the disk by a cut of the log, and the contents that are right after a power cut in it.
private struct AuditCutRecording {
  private static let firstKept: UInt64 = 4

  let changes: [DiskChange]
  private let changeCountBefore: Int
  private let entries: [AuditEntry]
  private let issuer: TestIssuer

  init() throws {
    let recorded = try TemporaryFolder(in: memoryFolder)
    issuer = try TestIssuer()
    let script = DeviceScript(in: recorded, issuers: [issuer])
    let recorder = try DiskRecorder(folder: recorded.path)
    try recorder.recording {
      try script.make()
      for step in [DeviceStep.open, .trust(0), .start, .round("accepted", "unlock"), .round("again", "lock")] {
        _ = try step.run(script)
      }
    }
    entries = try script.device.ledger.auditEntries(limit: 100)
    changeCountBefore = recorder.changes.count
    try recorder.recording { _ = try Self.cut(script.device.ledger, in: recorded) }
    changes = recorder.changes
  }

  private static func cut(_ ledger: Ledger, in place: TemporaryFolder) throws(AuditCutFault) -> AuditChain {
    try ledger.cutAudit(before: firstKept, to: place.file("cut"), realClock: testTime)
  }

  /// Whether the cut of the log had begun after that many changes.
  func stage(after changeCount: Int) -> Int { changeCount < changeCountBefore ? 0 : 1 }

  /// The fault of the device after `cut`; nil if there is none.
  func fault(_ cut: PowerCut) throws -> String? {
    let place = try TemporaryFolder(in: memoryFolder)
    try cut.image.write(to: place.path)
    let device = try TestDevice(opening: place.path + "/device", in: place, issuer: issuer)
    let isCut = try device.ledger.verifyAudit().firstKept == Self.firstKept
    if cut.changeCount == changes.count, !isCut { return "has the whole log after the cut was done" }
    if let fault = try fault(in: device.ledger, place, isCut: isCut) { return fault }
    guard try Self.cut(device.ledger, in: place).count == Self.firstKept - 1 else { return "ends the cut elsewhere" }
    return try fault(in: device.ledger, place, isCut: true).map { "\($0), once the cut was finished" }
  }

  private func fault(in ledger: Ledger, _ place: TemporaryFolder, isCut: Bool) throws -> String? {
    let (report, rest) = (try ledger.verifyAudit(), try ledger.auditEntries(limit: 100))
    guard report.firstBroken == nil else { return "has a broken audit chain" }
    guard isCut else { return rest == entries ? nil : "has other entries, and no cut" }
    let archive = try AuditArchive(path: place.file("cut"))
    guard try archive.verifyAudit().firstBroken == nil else { return "has a broken file" }
    let all = archive.auditEntries(after: 0, limit: 100) + rest
    guard all.dropLast() == entries[...], all.last?.event == .logCut(archive.end) else { return "has lost an entry" }
    return nil
  }
}
