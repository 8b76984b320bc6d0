import HoldfastCore
import Synchronization

/// The numbered requests that this process is carrying out, and outcomes that could not be written into the ledger at once.
///
/// Those are written with the ledger's next transaction. If the process ends before, the outcome is unknown, and a repetition
/// is answered `internal`.
final class RunningRequests: Sendable {
  private let state = Mutex(State())

  private struct State {
    var acting: Set<RequestIdentity> = []
    var outcomes: [RequestIdentity: Status] = [:]
  }

  /// Notes that the actuator is about to act.
  func begin(_ request: RequestIdentity) {
    state.withLock { state in _ = state.acting.insert(request) }
  }

  /// Notes what came of it.
  func end(_ request: RequestIdentity, _ outcome: Status) {
    state.withLock { state in
      state.acting.remove(request)
      state.outcomes[request] = outcome
    }
  }

  /// Notes that the actuator does not act after all.
  func abandon(_ request: RequestIdentity) {
    state.withLock { state in _ = state.acting.remove(request) }
  }

  /// Completes what the ledger holds for `round`.
  func complete(_ snapshot: inout LedgerSnapshot, for round: borrowing Round) {
    guard let request = RequestIdentity(round) else { return }
    state.withLock { state in
      snapshot.isActing = state.acting.contains(request)
      guard snapshot.request?.highest == request.number, let outcome = state.outcomes[request] else { return }
      snapshot.request?.outcome = outcome
    }
  }

  /// The outcomes to be written. They stay until ``remove(_:)``.
  var outcomes: [RequestIdentity: Status] {
    state.withLock { $0.outcomes }
  }

  /// Forgets outcomes that are written now.
  func remove(_ written: [RequestIdentity: Status]) {
    guard !written.isEmpty else { return }
    state.withLock { state in
      for request in written.keys { state.outcomes[request] = nil }
    }
  }
}
