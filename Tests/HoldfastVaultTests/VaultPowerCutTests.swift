import HoldfastCore
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastVault

/// The steps of a vault's life, one process after the other.
private enum VaultStep: Equatable, CaseIterable {
  case create
  case wrong
  case right
  case wrongAgain
  case passcode
  case keyFile
  case damage
  case restore
  case fail
  case failAgain
  case failForGood
  case createAgain
  case wipe
}

/// A vault that is opened anew for each step.
private struct VaultLife {
  let place: String
  let host = TestHost()

  var vault: Vault { Vault(path: place + "/v", environment: host.environment) }

  /// Carries a step out; throws if the step reports a failure.
  func does(_ step: VaultStep) throws {
    switch step {
    case .create, .createAgain:
      _ = try vault.create(
        passcode: passcode(rightPasscode), keyFile: place + "/../keys/key", attemptLimit: 3)
    case .right: _ = try vault.unlock(passcode: passcode(rightPasscode))
    case .wrong, .wrongAgain, .fail, .failAgain:
      do { _ = try vault.unlock(passcode: passcode(wrongPasscode)) } catch VaultFault.wrongPasscode {}
    case .failForGood:
      do { _ = try vault.unlock(passcode: passcode(wrongPasscode)) } catch VaultFault.wiped {}
    case .passcode:
      try vault.setPasscode(passcode("another horse"), of: vault.unlock(keyFile: place + "/../keys/key"))
    case .keyFile:
      try vault.setKeyFile(place + "/../keys/other", of: vault.unlock(keyFile: place + "/../keys/key"))
    case .damage: try Files.writeFileAtomically([], at: place + "/v/attempts", overwrite: true)
    case .restore: _ = try vault.restore(passcode: passcode("another horse"))
    case .wipe: try vault.wipe()
    }
  }
}

/// The knowledge of somebody who watched a vault's life up to a step.
private struct Known: Equatable {
  /// The number of attempts that are known to have begun.
  var attempts = 0
  var isMade = false
  var isWiped = false

  mutating func note(_ step: VaultStep) {
    switch step {
    case .create, .createAgain: (isMade, isWiped, attempts) = (true, false, 0)
    case .right, .passcode, .keyFile, .restore: attempts = 0
    case .wrong, .wrongAgain, .fail, .failAgain: attempts += 1
    case .failForGood, .wipe: isWiped = true
    case .damage: break
    }
  }
}

@Suite struct VaultPowerCutTests {
  private static func keys(in place: TemporaryFolder) throws {
    try Files.createPrivateDirectory(at: place.file("keys"))
    try place.makeFile("keys/key", [UInt8](0..<32))
    try place.makeFile("keys/other", [UInt8](32..<64))
    try Files.createPrivateDirectory(at: place.file("disk"))
  }

  @Test func `a power cut at any write gives no attempt back, loses no key, and wipes nothing by mistake`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    try Self.keys(in: place)
    let recorder = try DiskRecorder(folder: place.file("disk"))
    let life = VaultLife(place: place.file("disk"))
    var (known, marks) = (Known(), [(changeCount: Int, known: Known)]())
    for step in VaultStep.allCases {
      try recorder.recording { try life.does(step) }
      known.note(step)
      marks.append((recorder.changes.count, known))
    }
    let stage = { (count: Int) in marks.prefix { $0.changeCount <= count }.count }
    let after = try TemporaryFolder(in: memoryFolder)
    try Self.keys(in: after)
    var (faults, cutCount) = ([String](), 0)
    try PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      guard faults.count < 5 else { return }
      cutCount += 1
      let count = stage(cut.changeCount)
      let step = VaultStep.allCases[min(count, marks.count - 1)]
      let known = count > 0 ? marks[count - 1].known : Known()
      if let fault = try faultOfVault(cut.image, in: after, host: life.host, known: known, step: step) {
        faults.append("\(cut), in \(step): it \(fault)")
      }
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
    #expect(cutCount > 100)
  }

  /// A disk that is full or fails lets nobody try a passcode that was not written down.
  @Test(arguments: [VaultStep.wrong, .right, .passcode, .keyFile, .wipe, .createAgain])
  fileprivate func `a write that fails, at any point, gives no attempt and loses no key`(step: VaultStep) throws {
    let made = try TemporaryFolder(in: memoryFolder)
    try Self.keys(in: made)
    let recorder = try DiskRecorder(folder: made.file("disk"))
    let life = VaultLife(place: made.file("disk"))
    let steps: [VaultStep] = step == .createAgain ? [] : [.create, .wrong]
    for step in steps { try recorder.recording { try life.does(step) } }
    let disk = Disk(recorder.changes)
    var faults: [String] = []
    for kind in DiskFault.Kind.allCases {
      var operation = 0
      while faults.count < 5 {
        let place = try TemporaryFolder(in: memoryFolder)
        try Self.keys(in: place)
        let second = try DiskRecorder(folder: place.file("disk"), continuing: disk)
        second.fault = DiskFault(operation: operation, kind: kind, lasts: operation % 2 == 0)
        let there = VaultLife(place: place.file("disk"))
        let isDone = (try? second.recording { try there.does(step) }) != nil
        if second.operationCount <= operation { break }
        var known = steps.isEmpty ? Known() : Known(attempts: 1, isMade: true)
        if isDone { known.note(step) }
        var after = disk
        for change in second.changes { after.apply(change) }
        for survival in [Survival.all, .none] {
          let later = try TemporaryFolder(in: memoryFolder)
          try Self.keys(in: later)
          let found = try faultOfVault(
            after.image(after: survival), in: later, host: there.host, known: known, step: step)
          if let found { faults.append("\(kind) at \(operation), surviving \(survival): it \(found)") }
        }
        operation += 1
      }
      #expect(operation > 2)
    }
    #expect(faults.isEmpty, "\(faults.joined(separator: "\n"))")
  }

  /// The fault of the vault of `image`, which `step` may have changed meanwhile; nil if there is none.
  private func faultOfVault(
    _ image: DiskImage, in place: TemporaryFolder, host: TestHost, known: Known, step: VaultStep
  ) throws -> String? {
    let disk = place.file("disk")
    defer { try? Files.removeFlatFolder(at: disk + "/v") }
    try image.write(to: disk)
    let vault = Vault(path: disk + "/v", environment: host.environment)
    let mayBeUnmade = !known.isMade || [.failForGood, .createAgain, .wipe].contains(step) || known.isWiped
    var unlocked: UnlockedVault?
    for name in ["key", "other"] {
      do throws(VaultFault) { unlocked = try vault.unlock(keyFile: place.file("keys/\(name)")) } catch {
        switch error {
        case .wrongKeyFile: continue
        case .missing, .incomplete, .wiped: return mayBeUnmade ? nil : "is lost: \(error)"
        default: return "cannot be unlocked: \(error)"
        }
      }
    }
    guard unlocked != nil else { return "has lost its key" }
    if known.isWiped, ![.createAgain].contains(step) { return "was not wiped" }
    // One of the two passcodes is right, unless passcodes are refused.
    let mayBeDamaged = step == .damage || step == .restore
    let status = try vault.status()
    guard let left = status.attemptsLeft else {
      return mayBeDamaged || step == .failForGood ? nil : "refuses passcodes"
    }
    let mayBeReset = [.right, .passcode, .keyFile, .restore, .createAgain].contains(step)
    if left > 3 - known.attempts, !mayBeReset { return "gives attempts back" }
    do { _ = try vault.unlock(passcode: passcode(rightPasscode)) } catch VaultFault.wrongPasscode {
      _ = try vault.unlock(passcode: passcode("another horse"))
    } catch VaultFault.wiped where left == 1 {
      return nil
    }
    return nil
  }
}
