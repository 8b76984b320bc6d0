import HoldfastCore
import Synchronization

/// Counts the answers to peers that proved nothing, and says when the audit log is due for them: at most once a minute,
/// whatever strangers send.
final class UnprovedCounter: Sendable {
  static let intervalMilliseconds: UInt64 = 60_000

  private let state = Mutex(State())

  private struct State {
    var totals = UnprovedTotals()
    var lastTaken: UInt64?
  }

  func add(_ status: Status) {
    state.withLock { $0.totals[status] += 1 }
  }

  /// The counts since the last time, once a minute has passed since then, or at once when `isForced`; nil when there are none.
  func take(at milliseconds: UInt64, isForced: Bool = false) -> UnprovedTotals? {
    state.withLock { state in
      let totals = state.totals
      guard totals.statusCount > 0 else { return nil }
      if !isForced, let last = state.lastTaken, milliseconds < last + Self.intervalMilliseconds { return nil }
      state = State(lastTaken: milliseconds)
      return totals
    }
  }

  /// Takes back counts that could not be written.
  func putBack(_ totals: UnprovedTotals) {
    state.withLock { $0.totals.add(totals) }
  }
}
