import HoldfastCore
import HoldfastLinux
import HoldfastStorage
import HoldfastTransport
import PowerCut
import Synchronization
import TestSupport
import Testing

import HoldfastDevice

/// A device on a disk that is read-only, or becomes so: each call that writes says so, and does nothing by halves.
@Suite struct ReadOnlyDeviceTests {
  private let issuer: TestIssuer
  private let outside: TemporaryFolder

  init() throws { (issuer, outside) = (try TestIssuer(), try TemporaryFolder()) }

  /// Whether an error says that the file system is read-only.
  private static func isReadOnly(_ error: any Error) -> Bool {
    switch error {
    case DeviceFolderFault.folder(let fault), DeviceFolderFault.file(_, .file(let fault)): fault.kind == .readOnly
    case DeviceFolderFault.file(.ledger, .database(let fault)): fault == .readOnly
    case FirmwareImageFault.file(let fault), LedgerFault.unwritable(let fault): fault.kind == .readOnly
    case ServerFault.ledger(let fault): fault == .readOnly
    case let fault as LedgerFault: fault == .readOnly
    default: false
    }
  }

  private static func error(_ call: () throws -> Void) -> (any Error)? {
    do {
      try call()
      return nil
    } catch { return error }
  }

  /// Makes the disk read-only from each operation of `call` on, until `call` has fewer. Then calls `check` on a disk that can be
  /// written, with the path of the device and whether the call had failed.
  private func forEachOperation(
    of disk: Disk, _ call: (String) throws -> Void, then check: (String, Bool) throws -> Void
  ) throws {
    var unmadeLogCount = 0
    for operation in 0..<400 {
      let place = try TemporaryFolder(in: memoryFolder)
      let recorder = try DiskRecorder(folder: place.path, continuing: disk)
      recorder.fault = DiskFault(operation: operation, kind: .readOnly, lasts: true)
      let path = place.file("device")
      let error = recorder.recording { Self.error { try call(path) } }
      switch error {
      case nil: break
      // SQLite reports a log that it cannot make in the same way as a missing file.
      case DeviceFolderFault.file(.ledger, .database(.cannotOpen))?: unmadeLogCount += 1
      case let error?: #expect(Self.isReadOnly(error), "operation \(operation): \(error)")
      }
      recorder.fault = nil
      try check(path, error != nil)
      if recorder.operationCount <= operation {
        #expect(error == nil && operation > 3 && unmadeLogCount <= 2)
        return
      }
    }
    Issue.record("there is no end")
  }

  private func madeDisk() throws -> Disk {
    let made = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: made.path)
    try recorder.recording { _ = try DeviceScript.make(at: made.file("device")) }
    return Disk(recorder.changes)
  }

  @Test func `a device whose making fails is none, or a whole one whose mark was removed last`() throws {
    try forEachOperation(of: Disk([])) { path in
      _ = try DeviceScript.make(at: path)
    } then: { path, hasFailed in
      let isWhole = (try? DeviceFolder.open(at: path)) != nil
      if isWhole {
        #expect(throws: DeviceFolderFault.alreadyMade) { try DeviceScript.make(at: path) }
      } else {
        #expect(hasFailed)
        _ = try DeviceScript.make(at: path)
      }
      #expect(try DeviceFolder.open(at: path).openLedger().issuers().isEmpty)
    }
  }

  @Test func `an issuer is trusted only where it was recorded`() throws {
    try forEachOperation(of: madeDisk()) { path in
      let isNew = try DeviceFolder.open(at: path).trust(issuer: issuer.point)
      #expect(isNew)
    } then: { path, hasFailed in
      let folder = try DeviceFolder.open(at: path)
      let isTrusted = try !folder.openLedger().issuers().isEmpty
      #expect(isTrusted || hasFailed)
      #expect(try folder.trust(issuer: issuer.point) == !isTrusted)
      #expect(try folder.openLedger().verifyAudit().firstBroken == nil)
    }
  }

  @Test func `a device is opened and served, or its start does not count`() throws {
    let endpoint = try Endpoint(parsing: "unix:\(outside.file("socket"))")
    func serve(_ path: String) throws {
      let folder = try DeviceFolder.open(at: path)
      let open = try OpenDevice(folder: folder, random: SystemRandom(), clock: TestClock())
      _ = try DeviceServer(open, actuator: LockActuator(try folder.openLock()), at: [endpoint])
    }
    try forEachOperation(of: madeDisk(), serve) { path, hasFailed in
      let count = try DeviceFolder.open(at: path).openLedger().summary().bootCount
      #expect(count == 1 || count == 0 && hasFailed)
      try serve(path)
      #expect(try DeviceFolder.open(at: path).openLedger().summary().bootCount == count + 1)
    }
  }

  @Test func `while the disk is read-only, rounds are answered with internal and move nothing`() throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path, continuing: madeDisk())
    try recorder.recording {
      let device = try TestDevice(opening: place.file("device"), in: place, issuer: issuer)
      try device.ledger.trust(.signing(issuer.point), realClock: testTime)
      let open = try device.opened()
      // Not the simulated lock: its state is on the same disk, so that it would not move in any case.
      let bell = Bell()
      var session = try open.session(actuator: bell)
      let prover = try device.prover()
      for (expected, count) in [(Status.accepted, 1), (.internal, 1), (.internal, 1), (.accepted, 2)] {
        let answer = try prover.answer(try session.challenge(), command: "unlock")
        if expected == .internal {
          recorder.fault = DiskFault(operation: recorder.operationCount, kind: .readOnly, lasts: true)
        }
        #expect(session.respond(to: answer.message.span, waitedMilliseconds: 0).outcome.status == expected)
        recorder.fault = nil
        #expect(bell.count.load(ordering: .relaxed) == count)
      }
      open.close()
      #expect(try device.ledger.verifyAudit().firstBroken == nil)
    }
  }

  @Test(.enabled(if: ReadOnlyDisk.isPossible, "mounting is not allowed"))
  func `in a folder that is mounted read-only, each call that writes says so, and succeeds once it is writable`() throws
  {
    let point = issuer.point
    try ReadOnlyDisk.with { disk in
      let path = disk.folder + "/device"
      let calls: [(name: String, make: () throws -> Void)] = [
        ("create", { _ = try DeviceFolder.create(at: path, policy: .forSimulatedLock) }),
        ("policy", { try DeviceFolder.open(at: path).write(.denyAll) }),
        ("trust", { _ = try DeviceFolder.open(at: path).trust(issuer: point) }),
        ("open", { _ = try OpenDevice(at: path) }),
        (
          "reset",
          {
            var random = TestRandom(state: 2)
            _ = try DeviceFolder.reset(at: path, random: &random, clock: TestClock())
          }
        ),
        ("image", { _ = try Self.image(in: disk) }),
        (
          "owner",
          {
            let image = try FirmwareImage.open(at: disk.folder + "/flash.img")
            _ = try image.trust(.signing(point), realClock: testTime)
          }
        ),
      ]
      for call in calls {
        let error = try disk.whileReadOnly { Self.error(call.make) }
        #expect(error.map(Self.isReadOnly) == true, "\(call.name): \(String(describing: error))")
        try call.make()
      }
      let lock = try DeviceFolder.open(at: path).openLock()
      let policyFile = try DeviceFolder.open(at: path).policyFile()
      try disk.whileReadOnly {
        #expect(throws: ActuatorFailure.self) { try lock.move(to: .unlocked) }
        #expect(lock.current == .locked)
        let policy = policyFile.read().policy
        #expect(policy == .denyAll)
      }
      try lock.move(to: .unlocked)
    }
  }

  /// An actuator that counts commands, and keeps nothing on a disk.
  private final class Bell: Actuator, Sendable {
    let count = Atomic(0)

    func perform(_ request: borrowing Request, result: inout ResultBuffer) throws(ActuatorFailure) {
      count.add(1, ordering: .relaxed)
    }
  }

  private static func image(in disk: ReadOnlyDisk) throws -> FirmwareImage {
    var random = TestRandom(state: 1)
    return try FirmwareImage.create(at: disk.folder + "/flash.img", random: &random, clock: TestClock())
  }
}
