import HoldfastCore
import HoldfastStorage
import Synchronization

/// Ties a ledger to a counter outside of its folder, so that an older copy of the ledger is told from the newest one.
///
/// Every write raises the ledger's epoch and, once it is durable and before anything is acted upon, the counter. So the epoch
/// is the count, or one ahead of it where a write was cut off between the two; any other is not the newest ledger. Processes
/// take turns: no one sees another's write half done and counts for it.
///
/// A write that was cut off is one ahead of the counter, and so would be the next write on a copy from before it: the count
/// alone would then fit both. Therefore who does not know the epoch as one that he counted himself writes nothing at first but
/// the next epoch. What was cut off before is then either the ledger he goes on with or two behind the next one that matters.
final class LedgerAnchor: Sendable {
  private let deviceID: DeviceID
  private let counter: RollbackCounter
  private let turns: FolderTurns
  /// The last epoch that was counted here; nil before, and after a failure.
  private let counted = Mutex<UInt64?>(nil)

  init(of deviceID: DeviceID, _ counter: RollbackCounter, turns: FolderTurns) {
    (self.deviceID, self.counter, self.turns) = (deviceID, counter, turns)
  }

  /// Runs `body` while no other holder of a ledger in this folder is in a turn. Throws `busy` after ten seconds.
  func takeTurn<Result>(_ body: () throws(LedgerError) -> Result) throws(LedgerError) -> Result {
    try turns.take(orThrow: .database(.busy), body)
  }

  /// Throws unless `state` is that of the newest ledger; counts for a write that was cut off. Within a turn.
  func catchUp(with state: LedgerState) throws(LedgerError) {
    guard state.deviceID == deviceID else { throw .otherDevice }
    guard let epoch = state.epoch, epoch > 0 else { throw .rolledBack }
    do throws(CounterFault) {
      let count = try counter.read()
      if epoch == count { return }
      if epoch - 1 == count { return try counter.increment() }
    } catch { throw .counter(error) }
    throw .rolledBack
  }

  /// Whether `epoch` was counted here.
  func hasCounted(_ epoch: UInt64?) -> Bool {
    counted.withLock { $0 != nil && $0 == epoch }
  }

  /// Counts for a write that is durable now. Within its turn.
  func count(_ epoch: UInt64?) throws(LedgerError) {
    counted.withLock { $0 = nil }
    do throws(CounterFault) { try counter.increment() } catch { throw .counter(error) }
    counted.withLock { $0 = epoch }
  }
}
