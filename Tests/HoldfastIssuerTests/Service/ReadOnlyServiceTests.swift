import HoldfastCore
import HoldfastLinux
import PowerCut
import TestSupport
import Testing

import HoldfastIssuer

/// A service on a disk that is read-only, or becomes so.
@Suite struct ReadOnlyServiceTests {
  private let parties: Parties

  init() throws { parties = try Parties() }

  private func service(at path: String) -> RecordedService {
    RecordedService(path: path, releaseKeys: parties.releaseKeys, policy: parties.policy)
  }

  /// Whether an error says that the file system is read-only.
  private static func isReadOnly(_ error: any Error) -> Bool {
    switch error {
    case ServiceFolderFault.file(let fault): fault.kind == .readOnly
    // While a ledger is opened, SQLite reports a log that it cannot make in the same way as a missing file.
    case ServiceFolderFault.ledger(let fault): fault.cause == .readOnly || fault.cause == .cannotOpen
    case let fault as ServiceLedgerFault: fault.cause == .readOnly
    default: false
    }
  }

  /// Whether a step is refused because the file system is read-only; false if it is done.
  private static func isRefused(_ step: ServiceStep, by service: inout RecordedService) -> Bool {
    do {
      let isDone = try service.perform(step)
      #expect(isDone, "\(step)")
      return false
    } catch {
      #expect(isReadOnly(error), "\(step): \(error)")
      return true
    }
  }

  private static func expectDone(_ steps: some Sequence<ServiceStep>, by service: inout RecordedService) {
    for step in steps {
      let isDone = service.does(step)
      #expect(isDone, "\(step)")
    }
  }

  @Test func `a service whose making fails is none, or a whole one whose mark was removed last`() throws {
    for operation in 0..<400 {
      let place = try TemporaryFolder(in: memoryFolder)
      let recorder = try DiskRecorder(folder: place.path)
      recorder.fault = DiskFault(operation: operation, kind: .readOnly, lasts: true)
      var service = service(at: place.file("S"))
      let isRefused = recorder.recording { Self.isRefused(.make, by: &service) }
      if recorder.operationCount <= operation {
        #expect(!isRefused && operation > 3)
        return
      }
      recorder.fault = nil
      if !service.does(.open) {
        #expect(isRefused)
        Self.expectDone([.make, .open], by: &service)
      }
      Self.expectDone([.take(1), .claim(1, 1)], by: &service)
    }
    Issue.record("there is no end")
  }

  @Test(arguments: ServiceStep.life.indices.dropFirst())
  func `a step on a disk that has become read-only is refused, and done once it is writable`(index: Int) throws {
    let place = try TemporaryFolder(in: memoryFolder)
    let recorder = try DiskRecorder(folder: place.path)
    var service = service(at: place.file("S"))
    let step = ServiceStep.life[index]
    recorder.recording {
      Self.expectDone(ServiceStep.life[..<index], by: &service)
      recorder.fault = DiskFault(operation: recorder.operationCount, kind: .readOnly, lasts: true)
      let isRefused = Self.isRefused(step, by: &service)
      #expect(isRefused, "\(step)")
      recorder.fault = nil
      // A baseline or a salt that was half taken would be refused now.
      Self.expectDone(ServiceStep.life[index...], by: &service)
    }
  }

  @Test(.enabled(if: ReadOnlyDisk.isPossible, "mounting is not allowed"))
  func `in a folder that is mounted read-only, each step is refused, and done once it is writable`() throws {
    let parties = parties
    try ReadOnlyDisk.with { disk in
      var service = RecordedService(
        path: disk.folder + "/S", releaseKeys: parties.releaseKeys, policy: parties.policy)
      for step in [ServiceStep.make, .open, .register(1)] {
        let isRefused = try disk.whileReadOnly { Self.isRefused(step, by: &service) }
        #expect(isRefused, "\(step)")
        Self.expectDone([step], by: &service)
        service.close()
      }
      let folder = ServiceFolder(path: disk.folder + "/S")
      try disk.whileReadOnly {
        let error = #expect(throws: ServiceFolderFault.self) { try folder.write(parties.policy) }
        #expect(error.map(Self.isReadOnly) == true)
      }
      try folder.write(parties.policy)
      Self.expectDone([.take(1), .claim(1, 1), .raise(1)], by: &service)
    }
  }
}
