import HoldfastLinux
import Testing

import HoldfastDevice

/// Threads that work at once.
final class Crowd: Sendable {
  private let gate: WorkerGate

  init() throws {
    gate = try #require(WorkerGate(limit: .max))
  }

  /// Starts one more; an error that it throws is an issue of the test.
  func start(_ work: @escaping @Sendable () throws -> Void) {
    _ = gate.enter()
    let isStarted = Thread.detach { [gate] in
      defer { gate.leave() }
      do { try work() } catch { Issue.record(error) }
    }
    if !isStarted {
      gate.leave()
      Issue.record("no thread")
    }
  }

  /// Returns once all have ended. Once only.
  func wait() {
    gate.closeAndWait()
  }
}
