import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastTransport
import PowerCut
import Synchronization
import TestSupport
import Testing

import HoldfastProver

/// A disk that is full or read-only from any operation on.
@Suite struct FullDiskTests {
  private let lock: TestLock
  private static let kinds: [DiskFault.Kind] = [.full, .halfFull, .readOnly]

  init() throws { lock = try TestLock() }

  /// Does `first` on a disk with room, and returns that disk.
  private func disk(after first: (Prover) throws -> Void) throws -> Disk {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    try recorder.recording { try first(Prover(state: place.file("phone"), keys: .default)) }
    return Disk(recorder.changes)
  }

  /// Fills `disk` from each operation of `body` on, until `body` has fewer.
  private func forEachOperation(
    of disk: Disk, _ kind: DiskFault.Kind, _ body: (DiskRecorder, Prover, @escaping () -> Int) throws -> Void
  ) throws {
    for operation in 0..<200 {
      let place = try TemporaryFolder(in: memoryFolder)
      let recorder = try DiskRecorder(folder: place.path, continuing: disk)
      recorder.fault = DiskFault(operation: operation, kind: kind, lasts: true)
      let warnings = Counter()
      let prover = Prover(state: place.file("phone"), keys: .default, warn: { _ in warnings.add() })
      try body(recorder, prover) { warnings.count }
      if recorder.operationCount <= operation {
        #expect(operation > 3)
        return
      }
    }
    Issue.record("there is no end")
  }

  private func names(_ kind: DiskFault.Kind, _ fault: StateFolderFault) -> Bool {
    guard case .file(let error) = fault else { return false }
    return error.kind == (kind == .readOnly ? .readOnly : .diskFull)
  }

  @Test(arguments: kinds)
  func `an enrolment that the disk refuses is none or a whole one, and can be made later`(kind: DiskFault.Kind) throws {
    let (device, token) = (lock.descriptor, MeasurementToken([0xd2, 1]))
    // What `enroll` measures, once for all disks.
    let baseline = try Prover(state: "", keys: .default).takeBaseline()
    try forEachOperation(of: Disk([]), kind) { recorder, prover, _ in
      let fault = recorder.recording {
        stateFault { try prover.store(token, of: baseline, for: device, replacing: false) }
      }
      if let fault {
        #expect(names(kind, fault), "\(fault)")
        recorder.fault = nil
        switch stateFault({ _ = try prover.status() }) {
        case nil: #expect(try prover.folder.requiredEntry(of: device.deviceID).load().token == token.bytes)
        case .nothingEnrolled: break
        case let fault?: Issue.record("\(fault)")
        }
        try prover.store(token, of: baseline, for: device, replacing: true)
      }
      #expect(try prover.folder.requiredEntry(of: device.deviceID).load().token == token.bytes)
    }
  }

  @Test(arguments: kinds, [false, true])
  func `a token that the disk refuses is accepted later, and another one in its place is not`(
    kind: DiskFault.Kind, isEnrolled: Bool
  ) throws {
    let (device, token, other) = (lock.descriptor, MeasurementToken([0xd2, 1]), MeasurementToken([0xd2, 2]))
    let disk = try disk {
      if isEnrolled { try $0.enroll(for: device) { _ in MeasurementToken([0xd2, 3]) } }
      _ = try $0.begin(for: device.deviceID)
    }
    var wasStored = false
    try forEachOperation(of: disk, kind) { recorder, prover, _ in
      let fault = recorder.recording { stateFault { try prover.accept(token, for: device, replacing: isEnrolled) } }
      if let fault {
        #expect(names(kind, fault), "\(fault)")
        recorder.fault = nil
        // Only that the stored enrolment is on the disk could not be made sure.
        if let entry = try prover.folder.entry(of: device.deviceID), try entry.load().token == token.bytes {
          wasStored = true
          let refusal = stateFault { try prover.accept(other, for: device, replacing: true) }
          if case .usedBaseline(device.deviceID) = refusal {} else { Issue.record("\(String(describing: refusal))") }
        }
        // Where the enrolment was stored, it need not be replaced.
        let replaces = isEnrolled && !wasStored
        try recorder.recording { try prover.accept(token, for: device, replacing: replaces) }
      }
      try prover.accept(token, for: device)
      let found = try TemporaryFolder(in: memoryFolder)
      var after = disk
      for change in recorder.changes { after.apply(change) }
      try after.image(after: .none).write(to: found.path)
      let survivor = Prover(state: found.file("phone"), keys: .default)
      for prover in [prover, survivor] {
        #expect(try prover.folder.requiredEntry(of: device.deviceID).load().token == token.bytes)
        #expect(throws: ProverError.self) { try prover.accept(other, for: device, replacing: true) }
      }
    }
    #expect(wasStored)
  }

  @Test(arguments: kinds)
  func `a baseline that the disk refuses leaves the enrolment, and waits for a token later`(
    kind: DiskFault.Kind
  ) throws {
    let device = lock.descriptor
    let disk = try disk { try $0.enroll(for: device) { _ in MeasurementToken([0xd2, 1]) } }
    try forEachOperation(of: disk, kind) { recorder, prover, _ in
      let fault = recorder.recording { stateFault { _ = try prover.begin(for: device.deviceID) } }
      #expect(fault.map { names(kind, $0) } ?? true, "\(String(describing: fault))")
      let states = try prover.status()
      #expect(states.map(\.device) == [device.deviceID])
      recorder.fault = nil
      if fault != nil { _ = try prover.begin(for: device.deviceID, replacing: true) }
      try prover.accept(MeasurementToken([0xd2, 2]), for: device, replacing: true)
    }
  }

  @Test(arguments: kinds)
  func `a full or read-only disk keeps no proof from its verdict, and the owner is warned`(kind: DiskFault.Kind) throws
  {
    let lock = lock
    let disk = try disk { try $0.enroll(for: lock.descriptor) { try lock.token(for: $0) } }
    try forEachOperation(of: disk, kind) { recorder, prover, warningCount in
      let (ours, theirs) = try Connection.pair()
      let device = try lock.serve([theirs])
      let status = try recorder.recording {
        try prover.prove(Request(command: "status"), over: ours).verdict.status
      }
      #expect(status == .accepted)
      if let fault = recorder.fault, recorder.operationCount > fault.operation { #expect(warningCount() > 0) }
      ours.shutdown()
      device.join()
    }
  }

  @Test(.enabled(if: ReadOnlyDisk.isPossible, "mounting is not allowed"))
  func `on a file system that is mounted read-only, each call that writes says so, and changes nothing`() throws {
    let (device, key) = (lock.descriptor, MeasurementToken([0xd2, 1]))
    try ReadOnlyDisk.with { disk in
      let path = disk.folder + "/phone"
      let prover = Prover(state: path, keys: .default)
      func expectReadOnly(_ call: () throws -> Void) throws {
        let fault = try disk.whileReadOnly { stateFault(call) }
        guard case .file(let error) = fault else {
          Issue.record("\(String(describing: fault))")
          return
        }
        #expect(error.kind == .readOnly && error.path.hasPrefix(path))
      }
      let enroll = { (replacing: Bool) -> Void in try prover.enroll(for: device, replacing: replacing) { _ in key } }
      let begin = { _ = try prover.begin(for: device.deviceID) }
      let accept = { try prover.accept(MeasurementToken([0xd2, 2]), for: device, replacing: true) }
      for call in [{ try enroll(false) }, begin] { try expectReadOnly(call) }
      #expect(unsafe access(path, F_OK) != 0)
      try enroll(false)
      for call in [{ try enroll(true) }, begin] { try expectReadOnly(call) }
      try begin()
      try expectReadOnly(accept)
      #expect(try prover.folder.requiredEntry(of: device.deviceID).load().token == [0xd2, 1])
      // What is accepted already needs no write.
      try disk.whileReadOnly { try prover.accept(key, for: device) }
      try accept()
      #expect(try prover.folder.requiredEntry(of: device.deviceID).load().token == [0xd2, 2])
    }
  }

  @Test(.enabled(if: ReadOnlyDisk.isPossible, "mounting is not allowed"))
  func `from a state folder that is mounted read-only, a proof is accepted, and the owner is warned`() throws {
    try ReadOnlyDisk.with { disk in
      let lock = try TestLock()
      let state = disk.folder + "/phone"
      try Prover(state: state, keys: .default).enroll(for: lock.descriptor) { try lock.token(for: $0) }
      for isReadOnly in [true, false] {
        let warnings = Counter()
        let prover = Prover(state: state, keys: .default, warn: { _ in warnings.add() })
        let (ours, theirs) = try Connection.pair()
        let device = try lock.serve([theirs])
        let prove = { try prover.prove(Request(command: "status"), over: ours).verdict.status }
        let status = try isReadOnly ? disk.whileReadOnly(prove) : prove()
        #expect(status == .accepted)
        #expect((warnings.count > 0) == isReadOnly)
        ours.shutdown()
        device.join()
      }
    }
  }
}

private final class Counter: Sendable {
  private let value = Atomic(0)
  var count: Int { value.load(ordering: .relaxed) }
  func add() { value.add(1, ordering: .relaxed) }
}
