import Glibc

/// The wait of a connection for the lock of another one. It looks every millisecond.
///
/// SQLite's own waiting soon looks only every 100 ms, and can miss every moment between two transactions for seconds if others write
/// without a pause.
package struct LockWait: Sendable {
  /// The number of pauses of a millisecond. On a busy machine each takes longer, and so does the wait.
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
