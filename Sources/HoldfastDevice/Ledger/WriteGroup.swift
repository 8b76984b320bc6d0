import HoldfastLinux
import HoldfastStorage

/// The writes of several threads that become durable together.
///
/// The thread that begins a group lets all threads that are about to write add theirs, commits, and ends the group. Nobody waits for
/// threads that may come later. Only the holder of the ledger's monitor uses ``state`` and ``fault``.
final class WriteGroup: @unchecked Sendable {
  /// The state after the last write that is kept; nil while there is none.
  var state: LedgerState?
  /// The error at which SQLite rolled back the whole transaction; nil if it did not.
  var fault: DatabaseError?
  private let monitor = Monitor()
  private var result: Result<Void, LedgerError>?

  /// Ends the group: its kept writes are durable, or `fault` is the reason why none of them counts.
  func end(_ fault: LedgerError?) {
    monitor.withLock {
      result = fault.map { .failure($0) } ?? .success(())
      monitor.signal()
    }
  }

  /// Waits for the end of the group.
  ///
  /// - Throws: The reason why none of the writes counts.
  func waitForEnd() throws(LedgerError) {
    let ended = monitor.withLock { () -> Result<Void, LedgerError> in
      while true {
        if let result { return result }
        monitor.wait()
      }
    }
    try ended.get()
  }
}
