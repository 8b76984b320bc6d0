import HoldfastCore
import HoldfastStorage

/// What the server does with a ledger.
extension Ledger {
  /// Counts a start of the server; the count makes its challenges unlike those of every start before.
  func start(realClock: UInt64?) throws(LedgerError) -> UInt64 {
    try write { (tables, state) throws(DatabaseError) in
      state.bootCount += 1
      try tables.append(
        .started(bootCount: state.bootCount), time: state.time(realClock: realClock), to: &state)
      return state.bootCount
    }
  }

  /// Writes which policy is in force, unless the audit log was told of it last: SHA-256 of its file, or nil for none.
  func notePolicy(_ digest: Digest?, realClock: UInt64?) throws(LedgerError) {
    let seen = digest.map { PolicySeen.file($0) } ?? .unusable
    try write { (tables, state) throws(DatabaseError) in
      guard state.policySeen != seen else { return }
      state.policySeen = seen
      try tables.append(.policySeen(digest), time: state.time(realClock: realClock), to: &state)
    }
  }

  /// Reads what is held for `round`, lets `judge` decide, and records the decision: all of it, durably, or nothing.
  func settle(
    _ round: Round, judge: (Round, LedgerSnapshot) -> Decision
  ) throws(LedgerError) -> Decision {
    let limits = limits
    return try write { (tables, state) throws(DatabaseError) in
      try tables.dropOutdated(limit: limits.dropCount, state: &state)
      let decision = judge(round, try tables.snapshot(for: round, state: state, limits: limits))
      try tables.apply(decision, to: round, state: &state)
      let event = AuditEvent.round(AuditedRound(round, status: decision.status))
      try tables.append(event, time: state.time(realClock: round.realClock), to: &state)
      return decision
    }
  }

  /// Writes the totals of answers to peers that proved nothing, if they are due or `isForced`; keeps them when that fails.
  func recordUnproved(milliseconds: UInt64, realClock: UInt64?, isForced: Bool = false) {
    guard let totals = unproved.take(at: milliseconds, isForced: isForced) else { return }
    do throws(LedgerError) {
      try record(.unproved(totals), realClock: realClock)
    } catch {
      unproved.putBack(totals)
    }
  }
}
