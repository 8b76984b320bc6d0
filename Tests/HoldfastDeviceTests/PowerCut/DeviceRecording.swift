import PowerCut
import TestSupport

import HoldfastDevice

/// The changes of a device's disk in its life, and the device's contents after each step.
struct DeviceRecording {
  /// A step did not do what it is there for.
  struct UnexpectedStep: Error {
    let name: String
  }

  let issuers: [TestIssuer]
  let changes: [DiskChange]
  /// After how many changes each step was done, and what the device held then; the folder's making comes first.
  let steps: [(changeCount: Int, contents: DeviceContents)]
  let afterPowerCut: DeviceAfterPowerCut

  init(_ script: [DeviceStep]) throws {
    let place = try TemporaryFolder(in: memoryFolder)
    issuers = [try TestIssuer(), try TestIssuer()]
    let life = DeviceScript(in: place, issuers: issuers)
    let recorder = try DiskRecorder(folder: place.path)
    try recorder.recording { try life.make() }
    let changeCountOfMaking = recorder.changes.count
    var steps: [(changeCount: Int, contents: DeviceContents)] = []
    for step in script {
      guard try recorder.recording({ try step.run(life) }) else { throw UnexpectedStep(name: step.name) }
      steps.append((recorder.changes.count, try DeviceContents(life.device)))
    }
    changes = recorder.changes
    self.steps = [(changeCountOfMaking, steps[0].contents)] + steps
    afterPowerCut = try DeviceAfterPowerCut(life.device)
  }

  /// The fault of the device after `cut`; nil if there is none.
  func fault(_ cut: PowerCut) throws -> String? {
    let stepCount = stepCount(after: cut.changeCount)
    // Before the first step is done, there is a whole device or none.
    let last = steps[max(stepCount, 1) - 1].contents
    let next = stepCount > 0 && stepCount < steps.count ? steps[stepCount].contents : last
    return try afterPowerCut.fault(cut.image, isMade: stepCount > 0) { found in
      if last.mayBecome(found, before: next) { return nil }
      return "differs from step \(stepCount) in \(found.differences(from: last)), "
        + "and from the step after it in \(found.differences(from: next))"
    }
  }

  /// The number of steps that were done after that many changes.
  func stepCount(after changeCount: Int) -> Int {
    steps.prefix { $0.changeCount <= changeCount }.count
  }
}
