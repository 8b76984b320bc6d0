import PowerCut
import TestSupport
import Testing

import HoldfastDevice

@Suite struct FailingDiskTests {
  /// A step that is reported as done is there after a power cut too; one that is not was not acted upon; the device goes on.
  @Test(arguments: [false, true])
  func `an operation that fails, at any point of a device's life, loses nothing that was acted upon`(
    forGood lasts: Bool
  ) throws {
    let made = try recordedMaking()
    let disk = Disk(made.changes)
    let issuers = [try TestIssuer(), try TestIssuer()]
    let script = DeviceScript(in: made.place, issuers: issuers)
    try script.open()
    let afterPowerCut = try DeviceAfterPowerCut(script.device)
    var faultless = try DeviceOnFailingDisk(disk, issuers: issuers, afterPowerCut: afterPowerCut)
    #expect(try faultless.fault(in: DeviceStep.shortLife) == nil)
    let operationCount = faultless.recorder.operationCount
    let seen = SeenDisks()
    var faults: [String] = []
    for operation in 0..<operationCount {
      for kind in DiskFault.Kind.allCases where faults.count < 5 {
        let fault = DiskFault(operation: operation, kind: kind, lasts: lasts)
        var device = try DeviceOnFailingDisk(
          disk, fault: fault, issuers: issuers, afterPowerCut: afterPowerCut, seen: seen)
        if let found = try device.fault(in: DeviceStep.shortLife) { faults.append("\(fault): \(found)") }
      }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  @Test(arguments: [false, true])
  func `an operation that fails while a device is made leaves none, one that says so, or a whole one`(
    forGood lasts: Bool
  ) throws {
    let faultless = try recordedMaking()
    let operationCount = faultless.operationCount
    let place = faultless.place
    let afterPowerCut = try DeviceAfterPowerCut(
      TestDevice(opening: place.path + "/device", in: place, issuer: TestIssuer()))
    var faults: [String] = []
    for operation in 0..<operationCount {
      for kind in DiskFault.Kind.allCases where faults.count < 5 {
        let fault = DiskFault(operation: operation, kind: kind, lasts: lasts)
        if let found = try faultOfMaking(on: fault, afterPowerCut) { faults.append("\(fault): the device \(found)") }
      }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  private func recordedMaking(_ fault: DiskFault? = nil) throws -> Making {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    recorder.fault = fault
    let isMade = recorder.recording { (try? DeviceScript.make(at: place.path + "/device")) != nil }
    return Making(
      place: place, changes: recorder.changes, operationCount: recorder.operationCount, isMade: isMade)
  }

  private struct Making {
    let place: TemporaryFolder
    let changes: [DiskChange]
    let operationCount: Int
    let isMade: Bool
  }

  private func faultOfMaking(on fault: DiskFault, _ afterPowerCut: DeviceAfterPowerCut) throws -> String? {
    let making = try recordedMaking(fault)
    let disk = Disk(making.changes)
    for survival in [Survival.all, .none, .namesOnly] {
      let found = try afterPowerCut.fault(disk.image(after: survival), isMade: making.isMade) { contents in
        contents.tables["audit"]?.count == 1 ? nil : "is not a new one"
      }
      if let found { return "\(found), surviving: \(survival)" }
    }
    return nil
  }
}
