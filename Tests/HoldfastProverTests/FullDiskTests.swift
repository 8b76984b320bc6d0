import HoldfastCore
import HoldfastTransport
import PowerCut
import Synchronization
import TestSupport
import Testing

import HoldfastProver

@Suite struct FullDiskTests {
  private let lock: TestLock

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

  private func isFull(_ fault: StateFolderFault) -> Bool {
    if case .file(let error) = fault { error.kind == .diskFull } else { false }
  }

  @Test(arguments: [DiskFault.Kind.full, .halfFull])
  func `a token that the disk has no room for can be accepted once there is room`(kind: DiskFault.Kind) throws {
    let (device, token) = (lock.descriptor, MeasurementToken([0xd2, 1]))
    let disk = try disk { _ = try $0.begin(for: device.deviceID) }
    try forEachOperation(of: disk, kind) { recorder, prover, _ in
      let fault = recorder.recording { stateFault { try prover.accept(token, for: device) } }
      if let fault {
        #expect(isFull(fault), "\(fault)")
        recorder.fault = nil
        let again = stateFault { try prover.accept(token, for: device, replacing: true) }
        // The folder had its name already, and only that this is durable could not be made sure.
        switch again {
        case nil, .usedBaseline: break
        case let fault?: Issue.record("\(fault)")
        }
      }
      let enrolment = try prover.folder.requiredEntry(of: device.deviceID).load()
      #expect(enrolment.token == token.bytes)
    }
  }

  @Test(arguments: [DiskFault.Kind.full, .halfFull])
  func `a baseline that the disk has no room for leaves the enrolment, and waits for a token once there is room`(
    kind: DiskFault.Kind
  ) throws {
    let device = lock.descriptor
    let disk = try disk { try $0.enroll(for: device) { _ in MeasurementToken([0xd2, 1]) } }
    try forEachOperation(of: disk, kind) { recorder, prover, _ in
      let fault = recorder.recording { stateFault { _ = try prover.begin(for: device.deviceID) } }
      #expect(fault.map(isFull) ?? true, "\(String(describing: fault))")
      let states = try prover.status()
      #expect(states.map(\.device) == [device.deviceID])
      recorder.fault = nil
      if fault != nil { _ = try prover.begin(for: device.deviceID, replacing: true) }
      try prover.accept(MeasurementToken([0xd2, 2]), for: device, replacing: true)
    }
  }

  @Test(arguments: [DiskFault.Kind.full, .halfFull])
  func `a full disk keeps no proof from its verdict, and the owner is warned`(kind: DiskFault.Kind) throws {
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
}

private final class Counter: Sendable {
  private let value = Atomic(0)
  var count: Int { value.load(ordering: .relaxed) }
  func add() { value.add(1, ordering: .relaxed) }
}
