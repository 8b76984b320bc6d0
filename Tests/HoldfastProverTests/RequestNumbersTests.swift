import HoldfastLinux
import HoldfastProver
import Synchronization
import TestSupport
import Testing

@Suite struct RequestNumbersTests {
  private let place: TemporaryFolder

  init() throws { place = try TemporaryFolder() }

  @Test func `numbers rise while the enrolment's folder is replaced again and again`() throws {
    let folder = place.file("device")
    try Files.createPrivateDirectory(at: folder)
    let numbers = RequestNumbers(folder: folder, warn: { Issue.record("\($0)") })
    let isDone = Atomic(false)
    let replacements = Atomic(0)
    let fault = Mutex<(any Error)?>(nil)
    let staging = place.file(".new-device")
    try withThread {
      do {
        while !isDone.load(ordering: .relaxed) {
          try Files.createPrivateDirectory(at: staging)
          _ = try Files.renameFolder(at: staging, to: "device")
          // A file that is being written in the old folder may come or go meanwhile.
          while (try? Files.removeFlatFolder(at: staging)) == nil, (try? Files.requirePrivateFolder(at: staging)) != nil
          {}
          replacements.add(1, ordering: .relaxed)
        }
      } catch { fault.withLock { $0 = error } }
    } during: {
      defer { isDone.store(true, ordering: .relaxed) }
      var last: UInt64 = 0
      while replacements.load(ordering: .relaxed) < 300, fault.withLock({ $0 == nil }) {
        let next = try numbers.next()
        #expect(next > last)
        last = next
      }
    }
    if let fault = fault.withLock({ $0 }) { throw fault }
  }

  /// Runs `other` on a thread of its own until `body` has ended.
  private func withThread(_ other: @escaping @Sendable () -> Void, during body: () throws -> Void) throws {
    let thread = try Thread(other)
    defer { thread.join() }
    try body()
  }
}
