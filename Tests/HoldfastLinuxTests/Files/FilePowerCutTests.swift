import HoldfastLinux
import PowerCut
import TestSupport
import Testing

@Suite struct FilePowerCutTests {
  /// As a prover's state folder is filled, filled anew and emptied.
  private enum Step {
    case makeFolder
    case write(String, [UInt8])
    case remove(String)
  }

  private static let steps: [Step] = [
    .makeFolder, .write("configuration", [1]), .write("token", [2, 2]), .write("enrolment", [3]), .remove("enrolment"),
    .write("token", Array(repeating: 4, count: 2000)), .write("enrolment", [5]), .remove("configuration"),
  ]

  private func perform(_ step: Step, in folder: String) throws {
    switch step {
    case .makeFolder: try Files.createPrivateDirectory(at: folder)
    case .write(let name, let bytes): try Files.writeFileAtomically(bytes, at: folder + "/" + name, overwrite: true)
    case .remove(let name): try Files.removeFile(at: folder + "/" + name)
    }
  }

  /// The folder's files once `step` is done.
  private func files(_ files: [String: [UInt8]], after step: Step) -> [String: [UInt8]] {
    var files = files
    switch step {
    case .makeFolder: break
    case .write(let name, let bytes): files["state/" + name] = bytes
    case .remove(let name): files["state/" + name] = nil
    }
    return files
  }

  @Test func `a power cut at any point leaves each file as it was or as it became, and what is done stays done`() throws
  {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    var marks: [(changeCount: Int, files: [String: [UInt8]])] = [(0, [:])]
    for step in Self.steps {
      try recorder.recording { try perform(step, in: place.file("state")) }
      marks.append((recorder.changes.count, files(marks.last?.files ?? [:], after: step)))
    }
    let stage = { (count: Int) in marks.prefix { $0.changeCount <= count }.count }
    var wrong: [String] = []
    PowerCuts(recorder.changes).forEach(stage: stage) { cut in
      let stage = stage(cut.changeCount)
      let found = cut.image.files.filter { !$0.key.contains(".holdfast-") }
      let isAsItWas = found == marks[stage - 1].files && (stage == 1 || cut.image.folders == ["state"])
      if !isAsItWas, stage == marks.count || found != marks[stage].files { wrong.append("\(cut)") }
    }
    #expect(wrong.isEmpty)
  }

  @Test(arguments: DiskFault.Kind.allCases)
  func `a failure at any point leaves the old file or the new one, and the new one where none is reported`(
    kind: DiskFault.Kind
  ) throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let before = try recorded(in: place, [.makeFolder, .write("token", [1, 1])])
    let new = Step.write("token", Array(repeating: 2, count: 2000))
    let operationCount = try recorded(in: TemporaryFolder(in: memoryFolder), [new], continuing: before).operationCount
    var wrong: [String] = []
    for operation in 0..<operationCount {
      let fault = DiskFault(operation: operation, kind: kind, lasts: false)
      let run = try recorded(in: TemporaryFolder(in: memoryFolder), [new], continuing: before, fault: fault)
      for survival in Survival.kinds {
        let bytes = Disk(before.changes + run.changes).image(after: survival).files["state/token"]
        if bytes == [UInt8](repeating: 2, count: 2000) || bytes == [1, 1] && !run.isDone { continue }
        wrong.append("\(fault), \(survival)")
      }
    }
    #expect(wrong.isEmpty)
  }

  private struct Run {
    let changes: [DiskChange]
    let operationCount: Int
    let isDone: Bool
  }

  private func recorded(
    in place: TemporaryFolder, _ steps: [Step], continuing before: Run? = nil, fault: DiskFault? = nil
  ) throws -> Run {
    let recorder = try DiskRecorder(folder: place.path, continuing: Disk(before?.changes ?? []))
    recorder.fault = fault
    let isDone = recorder.recording {
      steps.allSatisfy { (try? perform($0, in: place.file("state"))) != nil }
    }
    return Run(changes: recorder.changes, operationCount: recorder.operationCount, isDone: isDone)
  }
}
