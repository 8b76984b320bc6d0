import Glibc

/// The wait of a connection for the lock of another one, at which it looks every millisecond.
///
/// SQLite's own waiting soon looks every 100 ms only. If several connections write without a pause, some of them do not meet the moment
/// between two transactions for seconds.
package struct LockWait: Sendable {
  /// How long the wait lasts, apart from what the looks take and what a pause is longer than a millisecond.
  let milliseconds: Int32

  package init(milliseconds: Int32) {
    self.milliseconds = milliseconds
  }

  /// Pauses for a millisecond after this many looks and pauses, and returns whether to look again. Returns false at once when the wait
  /// is over.
  package func pause(after looks: Int32) -> Bool {
    guard looks < milliseconds else { return false }
    usleep(1000)
    return true
  }
}
