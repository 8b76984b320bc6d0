import HoldfastCore
import Synchronization

/// The policy's rules about keeping the audit log.
package struct AuditRules: Sendable, Equatable {
  /// The most entries that are kept; nil for no limit.
  package var bound: UInt64?
  /// The id of the key whose holder is the home of the log; nil if the log stays at the device.
  package var home: KeyID?
  /// Whether a command is refused, rather than entries lost, once the log is full of entries that its home has not acknowledged.
  package var refusesWhenFull = false

  /// Creates rules that keep everything here.
  package init() {}

  /// Returns whether no round may be accepted. A part of the room is left to entries about starts, the owner, users and bulletins. Provers
  /// and strangers make none until there is room again.
  func isFull(kept: UInt64, unacknowledged: UInt64) -> Bool {
    guard refusesWhenFull, home != nil, let bound else { return false }
    return min(kept, unacknowledged) >= bound - bound / 16
  }
}

/// The rules about keeping the audit log, which the policy may change while the ledger is being written, and the number of entries that
/// are kept.
package final class AuditKeeping: Sendable {
  private struct State {
    var rules = AuditRules()
    var kept: UInt64 = 0
    var isAnnounced = false
  }

  private let state = Mutex(State())

  package var rules: AuditRules {
    get { state.withLock { $0.rules } }
    set { state.withLock { $0.rules = newValue } }
  }

  func note(kept: UInt64) { state.withLock { $0.kept = kept } }

  /// Returns the number of entries if they have reached nine tenths of the bound, once until they are fewer again.
  func takeNotice() -> (kept: UInt64, bound: UInt64)? {
    state.withLock { state in
      guard let bound = state.rules.bound, state.kept >= bound - bound / 10 else {
        state.isAnnounced = false
        return nil
      }
      defer { state.isAnnounced = true }
      return state.isAnnounced ? nil : (state.kept, bound)
    }
  }
}
