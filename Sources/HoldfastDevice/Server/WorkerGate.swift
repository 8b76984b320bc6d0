import Synchronization

/// Lets a limited number of workers in, and says when the last one has left.
final class WorkerGate: Sendable {
  private let limit: Int
  private let state = Mutex(State())
  private let idle: StopFlag

  private struct State {
    var count = 0
    var isClosed = false
  }

  /// nil when the process has no descriptors left.
  init?(limit: Int) {
    guard let idle = StopFlag() else { return nil }
    self.limit = limit
    self.idle = idle
  }

  /// Lets one in, unless the gate is closed or all places are taken.
  func enter() -> Bool {
    state.withLock { state in
      guard !state.isClosed, state.count < limit else { return false }
      state.count += 1
      return true
    }
  }

  /// One leaves.
  func leave() {
    state.withLock { state in
      state.count -= 1
      if state.isClosed && state.count == 0 { idle.raise() }
    }
  }

  /// Lets nobody in any more, and returns once all have left.
  func closeAndWait() {
    state.withLock { state in
      state.isClosed = true
      if state.count == 0 { idle.raise() }
    }
    idle.wait(milliseconds: nil)
  }
}
