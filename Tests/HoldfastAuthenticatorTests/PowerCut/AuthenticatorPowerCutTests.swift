import HoldfastCore
import PowerCut
import TestSupport
import Testing

import HoldfastAuthenticator

@Suite struct AuthenticatorPowerCutTests {
  @Test(arguments: AuthenticatorPlace.allCases)
  func `a power cut or a kill at any write brings no counter back, loses no secret, and leaves no two blindings`(
    in kind: AuthenticatorPlace
  ) throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    var life = AuthenticatorLife(path: place.file("a"), in: kind)
    var marks: [(changeCount: Int, shown: Shown)] = []
    for step in AuthenticatorStep.life {
      #expect(recorder.recording { life.does(step) }, "\(step)")
      life.noteBlindings()
      marks.append((recorder.changes.count, life.shown))
    }
    #expect(life.codes == ["755224", "287082", "359152", "969429", "338314", "254676"])
    let stage = { (count: Int) in marks.prefix { $0.changeCount <= count }.count }
    let after = try TemporaryFolder(in: memoryFolder)
    var faults: [String] = []
    try PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      guard faults.count < 5 else { return }
      let count = stage(cut.changeCount)
      let found = AuthenticatorAfterPowerCut(
        known: count > 0 ? marks[count - 1].shown : Shown(), next: marks[min(count, marks.count - 1)].shown, life: life)
      let step = AuthenticatorStep.life[min(count, marks.count - 1)]
      if let fault = try found.fault(cut.image, in: after) { faults.append("\(cut), in \(step): it \(fault)") }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  /// A code that is shown was recorded, even if the disk becomes full in the middle of it.
  @Test(arguments: [false, true])
  func `a write that fails, at any point, shows nothing that was not recorded, and loses nothing`(
    forGood lasts: Bool
  ) throws {
    let made = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: made.path)
    var before = AuthenticatorLife(path: made.file("a"))
    #expect(recorder.recording { before.does(.add) })
    let disk = Disk(recorder.changes)
    let steps: [AuthenticatorStep] = [.code, .seal, .prepare, .change, .pair, .importState, .code]
    let operationCount = try run(steps, before, disk, fault: nil).operationCount
    #expect(operationCount > 20)
    var faults: [String] = []
    for operation in 0..<operationCount {
      for kind in DiskFault.Kind.allCases where faults.count < 5 {
        let fault = DiskFault(operation: operation, kind: kind, lasts: lasts)
        if let found = try run(steps, before, disk, fault: fault).fault { faults.append("\(fault): it \(found)") }
      }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  /// Goes on from an authenticator that was just made, with a fault; then looks at what is on the disk.
  private func run(
    _ steps: [AuthenticatorStep], _ before: AuthenticatorLife, _ disk: Disk, fault: DiskFault?
  ) throws -> (operationCount: Int, fault: String?) {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path, continuing: disk)
    var life = before.moved(to: place.file("a"))
    recorder.fault = fault
    for step in steps { _ = recorder.recording { life.does(step) } }
    guard Set(life.codes).count == life.codes.count else { return (recorder.operationCount, "shows a code twice") }
    var disk = disk
    for change in recorder.changes { disk.apply(change) }
    for survival in [Survival.all, .none] {
      let after = try TemporaryFolder(in: memoryFolder)
      let found = AuthenticatorAfterPowerCut(known: life.shown, next: life.shown, life: life)
      if let fault = try found.fault(disk.image(after: survival), in: after) {
        return (recorder.operationCount, "\(fault), surviving: \(survival)")
      }
    }
    return (recorder.operationCount, nil)
  }
}
