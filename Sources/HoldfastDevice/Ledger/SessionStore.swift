import HoldfastCore
import HoldfastStorage

/// One connection's view of ledger and token memory: the store of its ``DeviceSession``.
struct SessionStore<Time: Clock & Sendable>: DeviceStore {
  private let ledger: Ledger
  private let memory: TokenMemory
  private let clock: Time
  /// Whether the round has an audit entry of its own.
  private var isSettled = false

  init(ledger: Ledger, memory: TokenMemory, clock: Time) {
    (self.ledger, self.memory, self.clock) = (ledger, memory, clock)
  }

  /// Asked for at the start of each round, so a round is not settled yet.
  mutating func clockFloor() throws(StoreFailure) -> UInt64 {
    isSettled = false
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.state().clockFloor }
    } catch { throw StoreFailure() }
  }

  func trustedIssuer(_ keyID: KeyID) -> P256Point? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.issuer(keyID) }
    } catch { return nil }
  }

  func recall(_ reference: TokenReference) -> VerifiedToken? {
    memory.recall(reference)
  }

  func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {
    memory.remember(token, as: reference)
  }

  mutating func settle(
    _ round: Round, judge: (Round, LedgerSnapshot) -> Decision
  ) throws(StoreFailure) -> Decision {
    do throws(LedgerError) {
      let decision = try ledger.settle(round, judge: judge)
      isSettled = true
      recordUnproved()
      return decision
    } catch { throw StoreFailure() }
  }

  /// A settled round whose answer has no seal, a compatibility round's, stands in the audit log already.
  func countUnproved(_ status: Status) {
    guard !isSettled else { return }
    ledger.unproved.add(status)
    recordUnproved()
  }

  private func recordUnproved() {
    ledger.recordUnproved(milliseconds: clock.monotonicMilliseconds(), realClock: clock.unixSeconds())
  }
}
