import HoldfastCore
import HoldfastStorage

/// The store of one connection's ``DeviceSession``: its view of the ledger and of the token memory.
package struct SessionStore<Time: Clock & Sendable>: DeviceStore {
  private let ledger: Ledger
  private let memory: TokenMemory
  private let clock: Time
  /// The event that the ledger recorded for the current round; nil if there is none yet.
  package var event: AuditEvent?
  private let policy: SessionPolicy?
  /// The pages of the audit log; nil for a store that gives none.
  private let pages: AuditPages?
  /// The prover of the last round.
  private var courier: Courier?
  /// The device whose store this is.
  var deviceID: DeviceID { ledger.deviceID }
  /// Whether the device has a real clock.
  var hasClock: Bool { policy?.hasClock ?? false }
  /// The parameters of the round that is recorded next, as the audit log keeps them; nil if they could not be hashed.
  private var parameters: [AuditedParameter]? = []

  /// Makes the view of one connection. `policy` says how the audit log keeps parameters; without one, it keeps none. Without `pages`,
  /// the log does not go home.
  package init(
    ledger: Ledger, memory: TokenMemory, clock: Time, policy: SessionPolicy? = nil, pages: AuditPages? = nil
  ) {
    (self.ledger, self.memory, self.clock, self.policy, self.pages) = (ledger, memory, clock, policy, pages)
  }

  package func clockFloor() throws(DeviceFault) -> UInt64 {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.state().clockFloor }
    } catch { throw .store }
  }

  package func trustedIssuer(_ keyID: KeyID) -> IssuerKey? {
    do throws(DatabaseError) {
      let realClock = clock.unixSeconds()
      return try ledger.read { (tables) throws(DatabaseError) in
        let now = try tables.state().time(realClock: realClock)
        return try tables.trusts(keyID, at: now) ? try tables.issuer(keyID) : nil
      }
    } catch { return nil }
  }

  package func recall(_ reference: TokenReference, into token: inout AuthenticatedToken) -> Bool {
    memory.recall(reference, into: &token)
  }

  package func remember(_ token: borrowing AuthenticatedToken, as reference: TokenReference) {
    memory.remember(token, as: reference)
  }

  package mutating func record(
    _ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide
  ) throws(DeviceFault) {
    guard let parameters else { throw .cryptography }
    do throws(LedgerError) {
      let introduces = policy?.introduces ?? false
      try ledger.record(round, parameters: parameters, introduces: introduces, &decision, decide: decide)
    } catch { throw .store }
    courier = Courier(issuer: round.verifyingKey, tokenID: round.tokenID, subject: round.subject)
    if decision.attempt == nil {
      var judged = AuditedRound(round, status: decision.status)
      judged.isRepetition = decision.isRepetition
      event = .round(judged)
    }
    recordTotals()
  }

  /// Returns the owner's text for people about a command; nil if there is none.
  func template(for command: BoundedText<32>) -> RequestTemplate? { policy?.current.texts[command] }

  package mutating func noteParameters(of request: borrowing Request) {
    guard let policy else { return }
    parameters = try? policy.current.auditedParameters(of: request)
  }

  package func recordFailure(_ failure: ActuatorFailure, of round: borrowing AcceptedRound) {
    // If this fails, the server's log still has the failure.
    try? ledger.record(.failed(AuditedFailure(round: round.sequence, failure)), realClock: clock.unixSeconds())
  }

  package func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    ledger.keepOutcome(outcome, of: request)
  }

  package func user(named name: BoundedText<32>) throws(DeviceFault) -> UserRecord? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.user(named: name) }
    } catch { throw .store }
  }

  package func codeSecret(of userID: UInt64, _ purpose: CodePurpose) throws(DeviceFault) -> CodeSecret? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.secret(purpose, of: userID) }
    } catch { throw .store }
  }

  package func mainUser(of name: BoundedText<32>) throws(DeviceFault) -> BoundedText<32> {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.mainUser(of: name) }
    } catch { throw .store }
  }

  package func protectionDemand(ofCode codeID: UInt64) throws(DeviceFault) -> ProtectionDemand? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.terms(ofCode: codeID)?.demand }
    } catch { throw .store }
  }

  package func oneUseCode(at index: Int) throws(DeviceFault) -> OneUseCodeRecord? {
    do throws(DatabaseError) {
      return try ledger.read { (tables) throws(DatabaseError) in try tables.code(at: index) }
    } catch { throw .store }
  }

  package mutating func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser
  ) throws(DeviceFault) -> Bool {
    do throws(LedgerError) {
      event = try ledger.activate(codeID, secrets, realClock: realClock, decide: decide).map { .userActivated($0) }
      return event != nil
    } catch { throw .store }
  }

  package func bulletins(of issuer: KeyID) throws(DeviceFault) -> BulletinList? {
    do throws(LedgerFault) { return try ledger.bulletins(of: issuer, realClock: clock.unixSeconds()) } catch {
      throw .store
    }
  }

  package mutating func take(
    _ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms
  ) throws(DeviceFault) -> BulletinResult {
    let result: BulletinResult
    do throws(LedgerError) { result = try ledger.take(bulletin, on: terms) } catch { throw .store }
    if result == .taken {
      event = .bulletinTaken(bulletin.issuer, bulletin.claims.audience, number: bulletin.claims.number)
      count(CourierCounts(bulletins: 1))
    }
    return result
  }

  package mutating func auditPage(from: UInt64, for home: KeyID) throws(DeviceFault) -> [UInt8]? {
    let page = try pages?.page(from: from, for: home, of: ledger, realClock: clock.unixSeconds())
    if page != nil { count(CourierCounts(pages: 1)) }
    return page
  }

  package func acknowledgedAuditCount() throws(DeviceFault) -> UInt64 {
    do throws(LedgerFault) { return try ledger.acknowledgedAuditCount() } catch { throw .store }
  }

  package mutating func acknowledgeAudit(
    _ chain: AuditChain, by home: KeyID, realClock: UInt64?
  ) throws(DeviceFault) -> BulletinResult {
    let result: BulletinResult
    do throws(LedgerError) { result = try ledger.acknowledgeAudit(chain, by: home, realClock: realClock) } catch {
      throw .store
    }
    if result == .taken { count(CourierCounts(receipts: 1)) }
    if result == .refused { event = .receiptRefused(home, count: chain.count) }
    return result
  }

  /// Counts mail of the prover of the last round. The owner's counts for nobody.
  private func count(_ counts: CourierCounts) {
    if let courier { ledger.courierCounter.add(counts, of: courier) }
  }

  package mutating func unlock(_ codeID: UInt64, realClock: UInt64?, decide: DecideUser) throws(DeviceFault) -> Bool {
    do throws(LedgerError) {
      event = try ledger.unlock(codeID, realClock: realClock, decide: decide).map { .userUnlocked($0) }
      return event != nil
    } catch { throw .store }
  }

  /// Counts an answer to a peer that proved nothing. A compatibility round's answer has no seal either, but the audit log has
  /// that round already.
  package func countUnauthenticated(_ status: Status) {
    ledger.unproved.add(status)
    recordTotals()
  }

  private func recordTotals() {
    ledger.recordTotals(milliseconds: clock.monotonicMilliseconds(), realClock: clock.unixSeconds())
  }
}
