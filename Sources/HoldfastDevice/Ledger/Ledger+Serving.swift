import HoldfastCore
import HoldfastFormats
import HoldfastStorage

/// The server's operations on a ledger.
extension Ledger {
  /// Counts a start of the server and returns the new count, which makes the challenges differ from those of every earlier
  /// start. If the last run did not end in order, that is recorded first.
  ///
  /// - Parameters:
  ///   - realClock: the real clock, in Unix seconds.
  ///   - host: distinguishes the starts of the host, such as the kernel's boot id; empty if it is not known.
  package func start(realClock: UInt64?, host: String = "") throws(LedgerError) -> UInt64 {
    try write { (tables, state) throws(DatabaseError) in
      var runs = try tables.runs()
      if let last = runs.host {
        runs.disorderlyEnds += 1
        let hostRestarted = last.isEmpty || host.isEmpty ? nil : !haveSameBytes(last, host)
        try tables.append(
          .runEnded(hostRestarted: hostRestarted), time: state.time(realClock: realClock), to: &state)
      }
      runs.host = host
      try tables.save(runs)
      state.bootCount += 1
      try tables.append(
        .started(bootCount: state.bootCount), time: state.time(realClock: realClock), to: &state)
      return state.bootCount
    }
  }

  /// Records that the server ends in order.
  package func finish(realClock: UInt64?) throws(LedgerError) {
    try write { (tables, state) throws(DatabaseError) in
      var runs = try tables.runs()
      runs.host = nil
      try tables.save(runs)
      try tables.append(.stopped, time: state.time(realClock: realClock), to: &state)
    }
  }

  /// Records the policy that is in force, unless it is the last one in the audit log. `digest` is SHA-256 of its file, or nil
  /// if the file is unusable.
  package func notePolicy(_ digest: Digest?, realClock: UInt64?) throws(LedgerError) {
    let seen = digest.map { PolicySeen.file($0) } ?? .unusable
    try write { (tables, state) throws(DatabaseError) in
      guard state.policySeen != seen else { return }
      state.policySeen = seen
      try tables.append(.policySeen(digest), time: state.time(realClock: realClock), to: &state)
    }
  }

  /// Reads the facts about `round`, lets `decide` make the decision, and records the decision in one durable transaction. A decision that
  /// changes nothing is counted instead of having an entry in the audit log, and so is each denial while that is full. If the round is
  /// accepted, its `parameters` are recorded as well, and its token is introduced if `introduces`.
  package func record(
    _ round: borrowing AppraisalInput, parameters: [AuditedParameter] = [], introduces: Bool = false,
    _ decision: inout Decision, decide: Decide
  ) throws(LedgerError) {
    if try answerRepetition(round, &decision, decide: decide) { return }
    let (limits, running, request, audiences) = (limits, running, RequestIdentity(round), audiences)
    let bulletinStates = bulletinStates
    do throws(LedgerError) {
      _ = try write(isKept: \.self) { (tables, state) throws(DatabaseError) in
        try tables.dropOutdated(limit: limits.dropCount, state: &state)
        var snapshot = try tables.snapshot(for: round, state: state, limits: limits)
        running.complete(&snapshot, for: round)
        decide(round, snapshot, &decision)
        // A prover that is refused because the log is full may carry it home.
        if round.tellsBulletins, !decision.isRepetition,
          decision.status == .accepted || decision.notice.refusal == .auditLogFull
        {
          decision.notice.hasAuditPage = tables.auditKeeping.rules.home != nil
        }
        guard decision.isRecorded(over: snapshot, round) else { return false }
        try tables.apply(decision, to: round, state: &state)
        // This happens before the lock is released: a repetition must not find the number without seeing that the request is
        // being acted upon. A refusal is recorded with its number, and not acted upon.
        if decision.request != nil, decision.status == .accepted, let request { running.begin(request) }
        // While the codes are still to be compared, no entry is made: the round is judged again with the result, and the
        // audit log keeps that decision.
        guard decision.attempt == nil else { return true }
        // A denial must not push another entry out of a full log. Nothing is accepted without an entry.
        guard decision.status == .accepted || !snapshot.isAuditLogFull else { return true }
        let event = AuditEvent.round(AuditedRound(round, status: decision.status))
        let time = state.time(realClock: round.realClock)
        decision.auditSequence = state.audit.count + 1
        try tables.append(event, time: time, to: &state)
        if decision.notice.refusal == .refusedByUser {
          let failure = ActuatorFailure(.refusedByUser)
          try tables.append(.failed(AuditedFailure(round: decision.auditSequence, failure)), time: time, to: &state)
        }
        guard decision.status == .accepted else { return true }
        if round.tellsBulletins, snapshot.hasBulletins, let issuer = round.verifyingKey {
          decision.notice.bulletinState = try tables.bulletinState(
            of: issuer, for: audiences, state: state, known: bulletinStates)
        }
        if introduces { try tables.introduce(round, clockFloor: state.clockFloor) }
        for var parameter in parameters {
          parameter.round = decision.auditSequence
          try tables.append(.parameter(parameter), time: time, to: &state)
        }
        return true
      }
    } catch {
      if decision.request != nil, let request { running.abandon(request) }
      throw error
    }
    let hasEntry = decision.auditSequence > 0 || decision.attempt != nil
    if !hasEntry, !decision.isRepetition { denied.add(round, decision.status) }
  }

  /// Answers a round whose request number was accepted before, without writing anything. Returns false for any other round.
  private func answerRepetition(
    _ round: borrowing AppraisalInput, _ decision: inout Decision, decide: Decide
  ) throws(LedgerError) -> Bool {
    guard let request = RequestIdentity(round) else { return false }
    let (limits, running) = (limits, running)
    do throws(DatabaseError) {
      return try read { (tables) throws(DatabaseError) in
        let state = try tables.state()
        guard let record = try tables.request(of: request),
          record.covers(request.number, clockFloor: state.clockFloor)
        else { return false }
        var snapshot = try tables.snapshot(for: round, state: state, limits: limits)
        running.complete(&snapshot, for: round)
        if snapshot.request?.highest == request.number, snapshot.request?.outcome == nil, !snapshot.isActing {
          // Meanwhile the outcome may have been written, and have left the memory: docs/model.md.
          snapshot.request = try tables.request(of: request)
        }
        decide(round, snapshot, &decision)
        return decision.isRepetition
      }
    } catch { throw .database(error) }
  }

  /// Returns whether a command of a token was accepted before, with the factors that its first use needs. If the ledger cannot
  /// be read, it was not.
  func hasIntroduced(_ token: borrowing AuthenticatedToken, for command: BoundedText<32>) -> Bool {
    let (verifyingKey, tokenID) = (token.verifyingKey, token.claims.tokenID)
    do throws(DatabaseError) {
      return try read { (tables) throws(DatabaseError) in
        try tables.hasIntroduced(verifyingKey, tokenID, for: command)
      }
    } catch { return false }
  }

  /// Returns the time by which a policy judges, in Unix seconds: the later one of the clock and the floor. It is nil if the clock
  /// is so far behind the floor that it has lost the time, and if the ledger cannot be read.
  func time(by clock: UInt64) -> UInt64? {
    guard let floor = try? read({ (tables) throws(DatabaseError) in try tables.state().clockFloor }) else { return nil }
    return floor <= clock + Self.clockToleranceSeconds ? max(floor, clock) : nil
  }

  /// The most by which an issuer's clock, which raises the floor, is expected to be ahead of the device's.
  private static var clockToleranceSeconds: UInt64 { 600 }

  /// Writes the outcome of an accepted round, without waiting for the disk. If others are writing, their transaction does it.
  ///
  /// The counter of an anchored ledger is not raised: in an older copy, the outcome is unknown.
  func keepOutcome(_ outcome: Status, of request: RequestIdentity) {
    running.end(request, outcome)
    do throws(DatabaseError) {
      let isKept: Void? = try outsideTransactions(isPatient: false) { (tables) throws(DatabaseError) in
        try tables.database.transactionWithoutWaiting { () throws(DatabaseError) in
          try tables.keep(outcome, of: request)
        }
      }
      if isKept != nil { running.remove([request: outcome]) }
    } catch { return }  // If this fails, the next transaction writes the outcome.
  }

  /// Creates the user of an activation code, with these secrets. Returns the user's name, or nil if the code is not good.
  package func activate(
    _ codeID: UInt64, _ secrets: borrowing UserSecrets, realClock: UInt64?, decide: DecideUser
  ) throws(LedgerError) -> BoundedText<32>? {
    let limits = limits
    return try write { (tables, state) throws(DatabaseError) -> BoundedText<32>? in
      guard let facts = try tables.facts(ofCode: codeID, state: state, limits: limits),
        let terms = try tables.terms(ofCode: codeID), let user = decide(facts)
      else { return nil }
      let name = facts.code.user
      guard try tables.isMet(terms, for: name, isKnown: facts.user != nil) else { return nil }
      if terms.renews || terms.main != nil {
        try tables.deleteAuthenticator(name)
      } else {
        try tables.deleteUser(name)
      }
      if terms.renews, let main = terms.main { try tables.unlock(main) }
      let id = try tables.insertUser(name, now: user.lastAccepted, terms: terms)
      for purpose in CodePurpose.allCases {
        guard let method = purpose == .host ? .ocra(.host) : user.accounts[purpose]?.method else { continue }
        try secrets.withBytes(of: purpose) { (secret) throws(DatabaseError) in
          try tables.insertAccount(purpose, method, nextPosition: 0, secret: secret, of: id)
        }
      }
      try tables.append(.userActivated(name), time: state.time(realClock: realClock), to: &state)
      return name
    }
  }

  /// Unlocks the user of an unlocking code. Returns the user's name, or nil if the code is not good.
  package func unlock(
    _ codeID: UInt64, realClock: UInt64?, decide: DecideUser
  ) throws(LedgerError) -> BoundedText<32>? {
    let limits = limits
    return try write { (tables, state) throws(DatabaseError) -> BoundedText<32>? in
      guard let facts = try tables.facts(ofCode: codeID, state: state, limits: limits), let user = decide(facts) else {
        return nil
      }
      let name = facts.code.user
      try tables.save(user)
      _ = try tables.setOwnerLock(of: name, until: 0)
      try tables.deleteCode(id: codeID)
      try tables.append(.userUnlocked(name), time: state.time(realClock: realClock), to: &state)
      return name
    }
  }

  /// Deletes a bounded number of audit entries that were cut off. The next call deletes more.
  package func dropCutEntries() {
    for _ in 0..<16 {
      let isMore = try? write { (tables, state) throws(DatabaseError) in try tables.dropCutEntries(state) }
      guard isMore == true else { return }
    }
  }

  /// Writes the totals of answers to peers that proved nothing, and the counts of denied rounds and of couriers, if they are due or
  /// `isForced`. If writing fails, it keeps them. While the audit log is full, it keeps all but those of couriers.
  package func recordTotals(milliseconds: UInt64, realClock: UInt64?, isForced: Bool = false) {
    let totals = unproved.take(at: milliseconds, isForced: isForced)
    let counts = denied.take(at: milliseconds, isForced: isForced)
    let couriers = courierCounter.take(at: milliseconds, isForced: isForced)
    guard totals != nil || !counts.isEmpty || !couriers.isEmpty else { return }
    do throws(LedgerError) {
      let isFull = try write(isKept: { !$0 || !couriers.isEmpty }) { (tables, state) throws(DatabaseError) -> Bool in
        let time = state.time(realClock: realClock)
        let isFull = tables.isAuditLogFull(state)
        if !isFull {
          if let totals { try tables.append(.unproved(totals), time: time, to: &state) }
          for rounds in counts { try tables.append(.denied(rounds), time: time, to: &state) }
        }
        for (courier, counts) in couriers { try tables.add(counts, of: courier, time: time) }
        if !couriers.isEmpty { try tables.dropOldCouriers() }
        return isFull
      }
      if isFull { putBack(totals, counts) }
    } catch {
      putBack(totals, counts)
      for (courier, counts) in couriers { courierCounter.add(counts, of: courier) }
    }
  }

  private func putBack(_ totals: UnauthenticatedTotals?, _ counts: [DeniedRounds]) {
    if let totals { unproved.putBack(totals) }
    denied.putBack(counts)
  }
}

extension LedgerTables {
  /// Returns whether an activation code still fits the users: a code that renews an authenticator needs that one, and a spare
  /// needs its user.
  fileprivate func isMet(
    _ terms: ActivationTerms, for name: BoundedText<32>, isKnown: Bool
  ) throws(DatabaseError) -> Bool {
    guard !terms.renews || isKnown else { return false }
    let presentMain = try mainUser(of: name)
    guard let main = terms.main else { return !isKnown || presentMain == name }
    guard try user(named: main) != nil, try mainUser(of: main) == main else { return false }
    return !isKnown || presentMain == main
  }
}
