import HoldfastCore
import HoldfastStorage

/// One connection's view of ledger and token memory: the store of its ``DeviceSession``.
struct SessionStore<Time: Clock & Sendable>: DeviceStore {
  private let ledger: Ledger
  private let memory: TokenMemory
  private let clock: Time
  /// What the ledger was told of the round that is under way; nil where that is nothing yet.
  private(set) var event: AuditEvent?

  init(ledger: Ledger, memory: TokenMemory, clock: Time) {
    (self.ledger, self.memory, self.clock) = (ledger, memory, clock)
  }

  mutating func beginRound() {
    event = nil
  }

  func clockFloor() throws(StoreFailure) -> UInt64 {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.state().clockFloor }
    } catch { throw StoreFailure() }
  }

  func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.issuer(keyID) }
    } catch { return nil }
  }

  func recall(_ reference: TokenReference, into token: inout VerifiedToken) -> Bool {
    memory.recall(reference, into: &token)
  }

  func remember(_ token: borrowing VerifiedToken, as reference: TokenReference) {
    memory.remember(token, as: reference)
  }

  mutating func settle(
    _ round: borrowing Round, _ decision: inout Decision, judge: Judge
  ) throws(StoreFailure) {
    do throws(LedgerError) { try ledger.settle(round, &decision, judge: judge) } catch { throw StoreFailure() }
    if decision.attempt == nil {
      var judged = AuditedRound(round, status: decision.status)
      judged.isRepetition = decision.isRepetition
      event = .round(judged)
    }
    recordTotals()
  }

  func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    ledger.keepOutcome(outcome, of: request)
  }

  func user(named name: BoundedText<32>) throws(StoreFailure) -> UserRecord? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.user(named: name) }
    } catch { throw StoreFailure() }
  }

  func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(StoreFailure) -> CodeSecret? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.secret(purpose, of: userID) }
    } catch { throw StoreFailure() }
  }

  func oneUseCode(at index: Int) throws(StoreFailure) -> OneUseCodeRecord? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.code(at: index) }
    } catch { throw StoreFailure() }
  }

  mutating func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?
  ) throws(StoreFailure) -> Bool {
    do throws(LedgerError) {
      event = try ledger.activate(codeID, secrets, realClock: realClock).map { .userActivated($0) }
      return event != nil
    } catch { throw StoreFailure() }
  }

  mutating func unlock(_ codeID: UInt64, realClock: UInt64?) throws(StoreFailure) -> Bool {
    do throws(LedgerError) {
      event = try ledger.unlock(codeID, realClock: realClock).map { .userUnlocked($0) }
      return event != nil
    } catch { throw StoreFailure() }
  }

  /// A settled round whose answer has no seal, a compatibility round's, stands in the audit log already.
  func countUnproved(_ status: Status) {
    guard event == nil else { return }
    ledger.unproved.add(status)
    recordTotals()
  }

  private func recordTotals() {
    ledger.recordTotals(milliseconds: clock.monotonicMilliseconds(), realClock: clock.unixSeconds())
  }
}
