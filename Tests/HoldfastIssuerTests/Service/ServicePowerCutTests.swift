import HoldfastCore
import HoldfastOpenSSL
import PowerCut
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct ServicePowerCutTests {
  private let parties: Parties

  init() throws {
    parties = try Parties()
  }

  private func service(in place: TemporaryFolder) -> RecordedService {
    RecordedService(path: place.path + "/S", releaseKeys: parties.releaseKeys, policy: parties.policy)
  }

  @Test func `a power cut at any point of a service's life forgets nothing that was answered`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    var service = service(in: place)
    let recorder = try DiskRecorder(folder: place.path)
    var marks: [(changeCount: Int, memory: ServiceMemory)] = []
    for step in ServiceStep.life {
      #expect(recorder.recording { service.does(step) }, "\(step)")
      marks.append((recorder.changes.count, service.memory))
    }
    let stage = { (count: Int) in marks.prefix { $0.changeCount <= count }.count }
    let afterPowerCut = try TemporaryFolder(in: memoryFolder)
    var faults: [String] = []
    try PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      guard faults.count < 5 else { return }
      let count = stage(cut.changeCount)
      let known = count > 0 ? marks[count - 1].memory : nil
      let next = marks[min(count, marks.count - 1)].memory
      var found = self.service(in: afterPowerCut)
      let fault = try found.fault(cut.image, knows: known, atMost: next)
      if let fault { faults.append("\(cut): the service \(fault)") }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  @Test(arguments: [false, true])
  func `an operation that fails, at any point of a service's life, loses nothing that was answered`(
    forGood lasts: Bool
  ) throws {
    let made = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: made.path)
    var service = service(in: made)
    _ = recorder.recording { service.does(.make) }
    let disk = Disk(recorder.changes)
    let operationCount = try run(disk, memory: service.memory, fault: nil).operationCount
    var faults: [String] = []
    for operation in 0..<operationCount {
      for kind in DiskFault.Kind.allCases where faults.count < 5 {
        let fault = DiskFault(operation: operation, kind: kind, lasts: lasts)
        if let found = try run(disk, memory: service.memory, fault: fault).fault { faults.append("\(fault): \(found)") }
      }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  /// Goes on from a service that was just made, with a fault and then without.
  private func run(
    _ disk: Disk, memory: ServiceMemory, fault: DiskFault?
  ) throws -> (operationCount: Int, fault: String?) {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path, continuing: disk)
    var service = service(in: place)
    service.memory = memory
    recorder.fault = fault
    for step in ServiceStep.life.dropFirst() { _ = recorder.recording { service.does(step) } }
    let operationCount = recorder.operationCount
    recorder.fault = nil
    for step in [ServiceStep.open, .take(9), .claim(9, 9), .raise(9)] where !recorder.recording({ service.does(step) })
    {
      return (operationCount, "does not \(step) once the fault is gone")
    }
    var disk = disk
    for change in recorder.changes { disk.apply(change) }
    for survival in [Survival.all, .none] {
      let afterPowerCut = try TemporaryFolder(in: memoryFolder)
      var found = self.service(in: afterPowerCut)
      let fault = try found.fault(
        disk.image(after: survival), knows: service.memory, atMost: service.attempted)
      if let fault { return (operationCount, "\(fault), surviving: \(survival)") }
    }
    return (operationCount, nil)
  }
}
