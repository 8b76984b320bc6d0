import HoldfastCore
import HoldfastStorage

extension LedgerTables {
  /// What is held for `round`. Reads alone.
  func snapshot(
    for round: borrowing Round, state: LedgerState, limits: LedgerLimits
  ) throws(DatabaseError) -> LedgerSnapshot {
    var snapshot = LedgerSnapshot(clockFloor: state.clockFloor)
    let (verifyingKey, tokenID) = key(of: round)
    if let keyID = round.verifyingKey {
      snapshot.isIssuerTrusted = try isTrusted(keyID)
      snapshot.generationFloor = try generationFloor(keyID)
    }
    if let name = round.codeUser { snapshot.user = try user(named: name) }
    let isForgotten = round.expires <= state.forgottenThrough
    let room = limits.keptCount - min(state.keptCount, limits.keptCount)
    if round.maximumUses != nil {
      let uses = try database.oneUnsigned("SELECT count FROM uses WHERE kid = ? AND jti = ?", verifyingKey, tokenID)
      snapshot.uses = uses ?? (isForgotten ? maximumInteger : 0)
      // The nonce of the same round takes its place first.
      snapshot.canCountUses = uses != nil || room > (round.compatibilityNonce == nil ? 0 : 1)
    }
    if let nonce = round.compatibilityNonce {
      let sql: StaticString = "SELECT 1 FROM nonces WHERE kid = ? AND jti = ? AND nonce = ?"
      let used = try database.oneUnsigned(sql, verifyingKey, tokenID, .copying(nonce.bytes))
      snapshot.isNonceUsed = used != nil || isForgotten
      // The holder of any token, a revoked one too, makes as many as there is room for: half of the places are left to uses, and
      // other tokens' nonces have places that one token's do not take.
      let ofToken = try database.oneUnsigned(
        "SELECT count(*) FROM (SELECT 1 FROM nonces WHERE kid = ? AND jti = ? LIMIT ?)", verifyingKey, tokenID,
        .unsigned(limits.nonceQuota))
      snapshot.canKeepNonce = room > limits.keptCount / 2 && ofToken ?? 0 < limits.nonceQuota
    }
    if round.requestNumber != nil {
      snapshot.request = try request(verifyingKey, tokenID, clockFloor: state.clockFloor)
      snapshot.canKeepRequest = snapshot.request != nil || state.requestCount < limits.requestCount
    }
    return snapshot
  }

  /// Writes what `decision` says; floors only rise.
  func apply(_ decision: borrowing Decision, to round: borrowing Round, state: inout LedgerState) throws(DatabaseError)
  {
    let (verifyingKey, tokenID) = key(of: round)
    state.clockFloor = max(state.clockFloor, decision.clockFloor)
    if let floor = decision.generationFloor {
      let sql: StaticString = """
        INSERT INTO generations VALUES (?, ?) ON CONFLICT DO UPDATE SET floor = excluded.floor WHERE excluded.floor > floor
        """
      try database.run(sql, verifyingKey, .unsigned(floor))
    }
    if let user = decision.user { try save(user) }
    if decision.countsUse {
      try countUse(verifyingKey, tokenID, expires: round.expires, state: &state)
    }
    if decision.keepsNonce, let nonce = round.compatibilityNonce {
      try database.run(
        "INSERT INTO nonces VALUES (?, ?, ?, ?)", verifyingKey, tokenID, .copying(nonce.bytes),
        .unsigned(round.expires))
      state.keptCount += 1
    }
    if let request = decision.request {
      try keep(request, verifyingKey, tokenID, expires: round.expires, state: &state)
    }
  }

  /// Drops some of what only tokens need that can never count again: those whose `exp` the clock floor has reached.
  func dropOutdated(limit: UInt64, state: inout LedgerState) throws(DatabaseError) {
    let uses: StaticString = """
      DELETE FROM uses WHERE (kid, jti) IN
        (SELECT kid, jti FROM uses WHERE expires <= ? ORDER BY expires LIMIT ?)
      """
    let nonces: StaticString = """
      DELETE FROM nonces WHERE (kid, jti, nonce) IN
        (SELECT kid, jti, nonce FROM nonces WHERE expires <= ? ORDER BY expires LIMIT ?)
      """
    for sql in [uses, nonces] {
      let dropped = try database.run(sql, .unsigned(state.clockFloor), .unsigned(limit))
      guard dropped <= state.keptCount else { throw .corrupt }
      state.keptCount -= UInt64(dropped)
    }
    try dropOutdatedRequests(limit: limit, state: &state)
  }

  /// A token that comes again with a later `exp` is kept for as long as the later one says.
  private func countUse(
    _ verifyingKey: Value, _ tokenID: Value, expires: UInt64, state: inout LedgerState
  ) throws(DatabaseError) {
    let update: StaticString = """
      UPDATE uses SET count = count + 1, expires = max(expires, ?) WHERE kid = ? AND jti = ?
      """
    guard try database.run(update, .unsigned(expires), verifyingKey, tokenID) == 0 else { return }
    try database.run("INSERT INTO uses VALUES (?, ?, ?, 1)", verifyingKey, tokenID, .unsigned(expires))
    state.keptCount += 1
  }

  /// Names a token, whose bytes do not: it can be encoded anew without keys. Unsigned ones have the empty key.
  private func key(of round: borrowing Round) -> (verifyingKey: Value, tokenID: Value) {
    (key(round.verifyingKey), .copying(round.tokenID.bytes))
  }
}
