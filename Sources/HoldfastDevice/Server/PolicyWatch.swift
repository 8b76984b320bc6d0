import HoldfastCore
import HoldfastStorage
import Synchronization

/// The policy file of a running server: each change of it is audited and announced once.
final class PolicyWatch: Sendable {
  private let file: PolicyFile
  private let ledger: Ledger
  private let notify: @Sendable (ServerNotice) -> Void
  private let announced = Mutex<Mark?>(nil)

  /// What tells one policy from another.
  private struct Mark: Equatable {
    let digest: Digest?
    let fault: PolicyFault?
  }

  init(_ file: PolicyFile, ledger: Ledger, notify: @escaping @Sendable (ServerNotice) -> Void) {
    (self.file, self.ledger, self.notify) = (file, ledger, notify)
  }

  /// The policy in force now. `realClock` is in Unix seconds.
  func policy(realClock: UInt64?) -> DevicePolicy {
    let reading = file.read()
    let mark = Mark(digest: reading.digest, fault: reading.fault)
    let isNew = announced.withLock { announced in
      guard announced != mark else { return false }
      announced = mark
      // While the file cannot be taken, nothing is allowed, and nothing is dropped.
      ledger.auditBound = reading.policy.auditEntryCount
      return true
    }
    if isNew { announce(reading, realClock: realClock) }
    return reading.policy
  }

  private func announce(_ reading: PolicyReading, realClock: UInt64?) {
    notify(.policy(reading))
    do throws(LedgerError) {
      try ledger.notePolicy(reading.digest, realClock: realClock)
    } catch {
      announced.withLock { $0 = nil }
    }
  }
}
