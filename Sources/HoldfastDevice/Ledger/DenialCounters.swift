import HoldfastCore
import Synchronization

/// Counts of denied rounds that changed nothing, by token and status. They are due for the audit log a minute after the first
/// one, however many there are.
///
/// At most ``rowLimit`` pairs of token and status are distinguished. Further rounds are counted by status.
package final class DeniedCounter: Sendable {
  package init() {}

  package static let intervalMilliseconds: UInt64 = 60_000
  package static let rowLimit = 1024

  private let state = Mutex(State())

  private struct Row: Hashable {
    let status: Status
    let verifyingKey: KeyID?
    let tokenID: TokenID
  }

  private struct State {
    var counts: [Row: UInt64] = [:]
    /// The keys of `counts`, in the order in which they were added.
    var rows: [Row] = []
    /// The counts of rounds beyond the limit, by status.
    var rest = UnauthenticatedTotals()
    /// The time of the first look at the counts since they were last taken, in monotonic milliseconds.
    var since: UInt64?
    var isEmpty: Bool { rows.isEmpty && rest.statusCount == 0 }
  }

  package func add(_ round: borrowing AppraisalInput, _ status: Status) {
    add(Row(status: status, verifyingKey: round.verifyingKey, tokenID: round.tokenID), count: 1)
  }

  private func add(_ row: Row, count: UInt64) {
    state.withLock { state in
      if let known = state.counts[row] {
        state.counts[row] = known + count
      } else if state.rows.count < Self.rowLimit {
        state.counts[row] = count
        state.rows.append(row)
      } else {
        state.rest[row.status] += count
      }
    }
  }

  /// Takes the counts since the last time, once a minute has passed, or at once if `isForced`. Returns none if there are
  /// none.
  ///
  /// The server calls this after every round and once a minute. So the first count waits for a minute, and none waits for
  /// two.
  package func take(at milliseconds: UInt64, isForced: Bool = false) -> [DeniedRounds] {
    state.withLock { state in
      guard !state.isEmpty else { return [] }
      let since = state.since ?? milliseconds
      state.since = since
      guard isForced || milliseconds >= since + Self.intervalMilliseconds else { return [] }
      let counts = state.rows.map { row in
        DeniedRounds(
          status: row.status, verifyingKey: row.verifyingKey, tokenID: row.tokenID, count: state.counts[row] ?? 0)
      }
      let rest = Status.allCases.filter { state.rest[$0] > 0 }.map { status in
        DeniedRounds(status: status, verifyingKey: nil, tokenID: nil, count: state.rest[status])
      }
      state = State()
      return counts + rest
    }
  }

  /// Adds back counts that could not be written.
  package func putBack(_ counts: [DeniedRounds]) {
    for rounds in counts {
      if let tokenID = rounds.tokenID {
        add(Row(status: rounds.status, verifyingKey: rounds.verifyingKey, tokenID: tokenID), count: rounds.count)
      } else {
        state.withLock { $0.rest[rounds.status] += rounds.count }
      }
    }
  }
}

/// Counts of answers to peers that proved nothing. They are due for the audit log at most once a minute, however many
/// messages such peers send.
package final class UnauthenticatedCounter: Sendable {
  package static let intervalMilliseconds: UInt64 = 60_000

  private let state = Mutex(State())

  private struct State {
    var totals = UnauthenticatedTotals()
    var lastTaken: UInt64?
  }

  package func add(_ status: Status) {
    state.withLock { $0.totals[status] += 1 }
  }

  /// Takes the counts since the last time, once a minute has passed since then, or at once if `isForced`. Returns nil if
  /// there are none.
  package func take(at milliseconds: UInt64, isForced: Bool = false) -> UnauthenticatedTotals? {
    state.withLock { state in
      let totals = state.totals
      guard totals.statusCount > 0 else { return nil }
      if !isForced, let last = state.lastTaken, milliseconds < last + Self.intervalMilliseconds { return nil }
      state = State(lastTaken: milliseconds)
      return totals
    }
  }

  /// Adds back counts that could not be written.
  package func putBack(_ totals: UnauthenticatedTotals) {
    state.withLock { $0.totals.add(totals) }
  }
}
