import HoldfastDatabase
import HoldfastStorage

/// Whether a service signs receipts for audit logs, and why.
package enum ReceiptState: Sendable, Equatable, CaseIterable {
  /// A synchronous standby has each commit.
  case standby
  /// The operator waived the standby: what was acknowledged may be on one disk only.
  case waived
  /// The service signs none: the database is a file on this host.
  case oneHost
  /// The service signs none: PostgreSQL's `synchronous_standby_names` is empty.
  case asynchronous
  /// The service signs none: no synchronous standby is connected, or the service's role may not see it.
  case noStandby

  /// Whether the service signs receipts.
  package var isSigning: Bool { self == .standby || self == .waived }
}

/// The condition under which the service signs receipts: a device drops what they acknowledge.
struct ReceiptCondition: Sendable {
  private let isPostgreSQL: Bool
  private let isWaived: Bool

  /// Creates a condition.
  ///
  /// - Parameters:
  ///   - location: The database.
  ///   - isWaived: Whether receipts need no standby.
  init(_ location: DatabaseLocation, isWaived: Bool) {
    if case .postgreSQL = location { isPostgreSQL = true } else { isPostgreSQL = false }
    self.isWaived = isWaived
  }

  /// Returns whether commits of this session wait for a standby, which is there, or need not. A commit sets `synchronous_commit` at least to
  /// `on`.
  ///
  /// A role that may not see the state of standbys finds none.
  func state(in session: FleetSession) throws(FleetFault) -> ReceiptState {
    guard !isWaived else { return .waived }
    guard isPostgreSQL else { return .oneHost }
    let found = try session.row(
      """
      SELECT current_setting('synchronous_standby_names'), (
        SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))
      """)
    guard let found else { throw .corrupt }
    let (names, count) = try session.decoding { () throws(SQLFault) in (try found.text(0), try found.unsigned(1)) }
    guard !names.isEmpty else { return .asynchronous }
    return count > 0 ? .standby : .noStandby
  }
}

/// A watch for changes of the state of receipts, which operators are told at most once a minute.
package struct ReceiptWatch {
  /// The seconds between two reports.
  private static let reportSeconds: UInt64 = 60

  private var reported: ReceiptState?
  private var reportTime: UInt64 = 0

  /// Creates a watch that has reported nothing.
  package init() {}

  /// Returns whether to report a state: the first one, or another one than reported before, a minute later at the earliest.
  ///
  /// - Parameters:
  ///   - state: The present state.
  ///   - time: The present time, in Unix seconds.
  package mutating func reports(_ state: ReceiptState, at time: UInt64) -> Bool {
    guard state != reported, reported == nil || time >= reportTime + Self.reportSeconds else { return false }
    (reported, reportTime) = (state, time)
    return true
  }
}

extension Fleet {
  /// Returns whether the service signs receipts, if operators have to be told: at the first call, and after changes, at most once a minute.
  package func receiptChange() throws(FleetFault) -> ReceiptState? {
    let (state, time) = try read { (session) throws(FleetFault) in
      (try self.receiptCondition.state(in: session), session.now)
    }
    return receiptWatch.withLock { $0.reports(state, at: time) } ? state : nil
  }
}
