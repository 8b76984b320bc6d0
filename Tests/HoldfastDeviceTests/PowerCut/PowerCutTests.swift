import Glibc
import HoldfastCore
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastDevice

@Suite struct PowerCutTests {
  /// The power is cut after each change of the disk, and what was not brought to the disk survives or not in several ways.
  @Test func `a power cut at any point of a device's life forgets nothing, and the device starts`() throws {
    let recording = try DeviceRecording(DeviceStep.life)
    var faults: [String] = []
    try PowerCuts(recording.changes).forEach(stage: recording.stepCount) { cut in
      guard faults.count < 5, let fault = try recording.fault(cut) else { return }
      faults.append("\(cut): the device \(fault)")
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  /// The second process sees changes that the first one has not brought to the disk, and must not rely on them.
  @Test func `after a kill at any point, what the next process acts upon survives a power cut`() throws {
    let recording = try DeviceRecording(DeviceStep.life)
    var disk = Disk()
    var faults: [String] = []
    for (index, change) in recording.changes.enumerated() where faults.count < 5 {
      disk.apply(change)
      let files = disk.image(after: .all).files
      // A half-made device, which has a mark, is made anew by the owner.
      let isMade = files.keys.contains("device/device.json") && !files.keys.contains("device/half-made")
      guard isMade || files.keys.allSatisfy({ $0 == "device/lock" }) else { continue }
      // Told to go where it stands already.
      let command = files["device/actuator.state"]?.first == UInt8(ascii: "u") ? "unlock" : "lock"
      let confirmation = DeviceStep.round("where it stands", command) {
        ($0.generation, $0.expires) = (9, testTime + 900_000)
      }
      var device = try DeviceOnFailingDisk(
        disk, locks: [.locked, .unlocked], issuers: recording.issuers, afterPowerCut: recording.afterPowerCut)
      if let fault = try device.fault(in: [.open, .trust(0), .start, confirmation]) {
        faults.append("change \(index + 1): \(fault)")
      }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  @Test func `a lock that is told to stay where a stopped process left it stays there`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    let file = LockStateFile(path: place.file("actuator.state"), deviceID: DeviceID())
    try recorder.recording {
      try file.write(.unlocked)
      // Everything of the second write but its last step, which brings the name to the disk.
      recorder.fault = DiskFault(operation: recorder.operationCount + 4, kind: .failure, lasts: true)
      #expect(throws: DeviceFileFault.file(FileError(.other(errno: EIO), at: file.path))) { try file.write(.locked) }
    }
    let next = try TemporaryFolder(in: memoryFolder)
    let disk = Disk(recorder.changes)
    let second = try DiskRecorder(folder: next.path, continuing: disk)
    let lock = try SimulatedLock(LockStateFile(path: next.file("actuator.state"), deviceID: DeviceID()))
    #expect(lock.current == .locked)
    #expect(disk.image(after: .none).files["actuator.state"]?.first == UInt8(ascii: "u"))
    try second.recording { try lock.move(to: .locked) }
    let changes = recorder.changes + second.changes
    #expect(Disk(changes).image(after: .none).files["actuator.state"]?.first == UInt8(ascii: "l"))
  }

  @Test func `a power cut at any point of a reset leaves the old device, the new one, or one that can be reset`() throws
  {
    let recording = try ResetRecording()
    var faults: [String] = []
    try PowerCuts(recording.changes).forEach(stage: recording.stage(after:)) { cut in
      guard cut.changeCount >= recording.changeCountBefore, faults.count < 5, let fault = try recording.fault(cut)
      else { return }
      faults.append("\(cut): the device \(fault)")
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  @Test func `a device that is made in a folder which somebody has just made is not lost with it`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    try recorder.recording {
      try DiskImage(folders: ["device"]).write(to: place.path)
      _ = try DeviceScript.make(at: place.path + "/device")
    }
    #expect(Disk(recorder.changes).image(after: .none).files.keys.contains("device/device.json"))
  }
}
