import HoldfastCore
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastAuthenticator

/// An authenticator on a disk that is read-only, or becomes so.
@Suite struct ReadOnlyAuthenticatorTests {
  private static func isReadOnly(_ fault: AuthenticatorFault?) -> Bool {
    if case .folder(let error) = fault { return error.kind == .readOnly }
    return fault == .readOnly
  }

  /// Makes the disk read-only from each operation of `call` on, until `call` has fewer. Then `check` is called on a disk that can
  /// be written.
  private func forEachOperation(
    of disk: Disk, _ call: (String) throws -> Void, then check: (String, _ hasFailed: Bool) throws -> Void
  ) throws {
    var unmadeLogCount = 0
    for operation in 0..<400 {
      let place = try TemporaryFolder(in: memoryFolder)
      let recorder = try DiskRecorder(folder: place.path, continuing: disk)
      recorder.fault = DiskFault(operation: operation, kind: .readOnly, lasts: true)
      let path = place.file("a")
      let refusal = recorder.recording { fault { try call(path) } }
      // SQLite reports a log that it cannot make in the same way as a missing file.
      if refusal == .missing { unmadeLogCount += 1 }
      #expect(
        refusal == nil || refusal == .missing || Self.isReadOnly(refusal),
        "operation \(operation): \(String(describing: refusal))")
      recorder.fault = nil
      try check(path, refusal != nil)
      if recorder.operationCount <= operation {
        #expect(refusal == nil && operation > 3 && unmadeLogCount <= 2)
        return
      }
    }
    Issue.record("there is no end")
  }

  private static func create(_ path: String) throws { _ = try AuthenticatorFolder.create(at: path, cost: .test) }

  private static func add(_ path: String) throws {
    var random = TestRandom(state: 1)
    try AuthenticatorFolder.open(at: path, cost: .test).add([NewRecord()], protection: .none, random: &random)
  }

  private static func count(_ path: String) throws -> Int {
    try AuthenticatorFolder.open(at: path, cost: .test).records().count
  }

  private func disk(after calls: ((String) throws -> Void)...) throws -> Disk {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    try recorder.recording { for call in calls { try call(place.file("a")) } }
    return Disk(recorder.changes)
  }

  @Test func `an authenticator whose making fails is made by the next call`() throws {
    try forEachOperation(of: Disk([]), Self.create) { path, _ in
      try Self.create(path)
      #expect(try Self.count(path) == 0)
    }
  }

  @Test func `a record that cannot be stored is not there, and is stored later`() throws {
    try forEachOperation(of: disk(after: Self.create), Self.add) { path, hasFailed in
      // A record that reached the log, and whose log did not reach the disk, is there.
      let isThere = try Self.count(path) == 1
      #expect(isThere || hasFailed)
      if !isThere { try Self.add(path) }
      #expect(try Self.count(path) == 1)
    }
  }

  @Test(.enabled(if: ReadOnlyDisk.isPossible, "mounting is not allowed"))
  func `in a folder that is mounted read-only, each call says so, and succeeds once it is writable`() throws {
    try ReadOnlyDisk.with { disk in
      let path = disk.folder + "/a"
      let calls: [(String) throws -> Void] = [
        Self.create, Self.add, { _ = try AuthenticatorFolder.open(at: $0) },
        { _ = try AuthenticatorFolder.create(at: $0) },
      ]
      for call in calls {
        let refusal = try disk.whileReadOnly { fault { try call(path) } }
        #expect(Self.isReadOnly(refusal), "\(String(describing: refusal))")
        try call(path)
      }
      #expect(try Self.count(path) == 1)
    }
  }
}
