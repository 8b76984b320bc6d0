import HoldfastCore
import Synchronization

/// Counts the answers to peers that proved nothing, and says when the audit log is due for them: at most once a minute,
/// whatever strangers send.
final class UnprovedCounter: Sendable {
  static let intervalMilliseconds: UInt64 = 60_000

  private let state = Mutex(State())

  private struct State {
    var counts = InlineArray<256, UInt64>(repeating: 0)
    var isEmpty = true
    var lastTaken: UInt64?
  }

  func add(_ status: Status) {
    state.withLock {
      $0.counts[Int(status.rawValue)] += 1
      $0.isEmpty = false
    }
  }

  /// The counts since the last time, once a minute has passed since then, or at once when `isForced`; nil when there are none.
  func take(at milliseconds: UInt64, isForced: Bool = false) -> [UnprovedTotal]? {
    state.withLock { state in
      guard !state.isEmpty else { return nil }
      if !isForced, let last = state.lastTaken, milliseconds < last + Self.intervalMilliseconds { return nil }
      var totals: [UnprovedTotal] = []
      for status in Status.allCases where state.counts[Int(status.rawValue)] > 0 {
        totals.append(UnprovedTotal(status: status, count: state.counts[Int(status.rawValue)]))
        state.counts[Int(status.rawValue)] = 0
      }
      state.isEmpty = true
      state.lastTaken = milliseconds
      return totals
    }
  }

  /// Takes back counts that could not be written.
  func putBack(_ totals: [UnprovedTotal]) {
    state.withLock {
      for total in totals { $0.counts[Int(total.status.rawValue)] += total.count }
      $0.isEmpty = false
    }
  }
}
