import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// What the owner of a device does with its ledger, whether or not it is being served. Each is audited.
extension Ledger {
  /// Trusts an issuer; says whether it is new.
  ///
  /// Throws `tooManyIssuers` beyond 64 of both kinds, `keyIDTaken` for another key of the same id, `busy`, `failed`.
  /// `realClock` is in Unix seconds.
  @discardableResult
  public func trust(_ issuer: borrowing IssuerKey, realClock: UInt64?) throws(LedgerFault) -> Bool {
    let keyID: KeyID
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      keyID = try HoldfastCore.keyID(of: issuer, using: &cryptography)
    } catch { throw .failed }
    let limit = limits.issuerCount
    let outcome = try change { (tables, state) throws(DatabaseError) -> Result<Bool, LedgerFault> in
      if let known = try tables.issuer(keyID) {
        return known.isSame(as: issuer) ? .success(false) : .failure(.keyIDTaken)
      }
      guard try tables.issuerCount() < limit else { return .failure(.tooManyIssuers) }
      try tables.insertIssuer(keyID, issuer)
      try tables.append(.issuerTrusted(keyID), time: state.time(realClock: realClock), to: &state)
      return .success(true)
    }
    return try outcome.get()
  }

  /// Trusts an issuer no longer, from the next round on; says whether it was trusted. Its generation floor stays.
  ///
  /// Throws `busy`, `failed`. `realClock` is in Unix seconds.
  @discardableResult
  public func removeTrust(_ keyID: KeyID, realClock: UInt64?) throws(LedgerFault) -> Bool {
    try change { (tables, state) throws(DatabaseError) in
      guard try tables.deleteIssuer(keyID) else { return false }
      try tables.append(.issuerRemoved(keyID), time: state.time(realClock: realClock), to: &state)
      return true
    }
  }

  /// The trusted issuers, by key id. Throws `busy`, `failed`.
  public func issuers() throws(LedgerFault) -> [TrustedIssuer] {
    try look { (tables) throws(DatabaseError) in try tables.issuers() }
  }

  /// Moves the clock floor by hand, to `floor` in Unix seconds, ahead or back; returns where it was.
  ///
  /// Moved back, tokens that had expired may count again; those with `max`, and compatibility nonces, count as used up
  /// unless their record is still there. `realClock`, in Unix seconds, dates the audit entry. Throws `floorOutOfRange` beyond
  /// 2^53 - 1, `busy`, `failed`, and `rolledBack` or `counter` where the ledger is anchored.
  @discardableResult
  public func moveClockFloor(to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    return try change { (tables, state) throws(DatabaseError) in
      let from = state.clockFloor
      guard floor != from else { return from }
      if floor < from { state.forgottenThrough = max(state.forgottenThrough, from) }
      state.clockFloor = floor
      try tables.append(.clockFloorMoved(from: from, to: floor), time: state.time(realClock: realClock), to: &state)
      return from
    }
  }

  /// Moves the generation floor of a verifying key by hand, ahead or back; returns where it was.
  ///
  /// Moved back, tokens that were revoked count again. `realClock`, in Unix seconds, dates the audit entry. Throws
  /// `floorOutOfRange` beyond 2^53 - 1, `unknownIssuer`, `busy`, `failed`, and `rolledBack` or `counter` where the ledger is
  /// anchored.
  @discardableResult
  public func moveGenerationFloor(of keyID: KeyID, to floor: UInt64, realClock: UInt64?) throws(LedgerFault) -> UInt64 {
    guard floor <= maximumInteger else { throw .floorOutOfRange }
    let from = try change { (tables, state) throws(DatabaseError) -> UInt64? in
      let from = try tables.generationFloor(keyID)
      let isTrusted = try tables.isTrusted(keyID)
      guard isTrusted || from > 0 else { return nil }
      guard floor != from else { return from }
      try tables.setGenerationFloor(keyID, to: floor)
      try tables.append(
        .generationFloorMoved(keyID, from: from, to: floor), time: state.time(realClock: realClock), to: &state)
      return from
    }
    guard let from else { throw .unknownIssuer }
    return from
  }

  /// Gives the ledger to a device that is new: nothing is left but the count of starts and the audit log, which goes on.
  ///
  /// The clock floor begins at `realClock`, in Unix seconds, and an anchored ledger at the `epoch` of its new counter. Sound
  /// only because no token is encrypted to the new key yet.
  func reset(
    to deviceID: DeviceID, realClock: UInt64, epoch: UInt64? = nil, tpm: String? = nil
  ) throws(LedgerError) {
    try write { (tables, state) throws(DatabaseError) in
      try tables.forgetAll()
      (state.deviceID, state.clockFloor, state.forgottenThrough) = (deviceID, realClock, 0)
      (state.keptCount, state.requestCount, state.policySeen) = (0, 0, .none)
      (state.epoch, state.tpm) = (epoch, tpm)
      try tables.append(.reset(deviceID), time: realClock, to: &state)
    }
  }

  /// What there is to show. Throws `busy`, `failed`.
  public func summary() throws(LedgerFault) -> LedgerSummary {
    try look { (tables) throws(DatabaseError) in
      let state = try tables.state()
      return LedgerSummary(
        clockFloor: state.clockFloor, bootCount: state.bootCount, keptCount: state.keptCount,
        userCount: try tables.userCount(), audit: state.audit)
    }
  }

  func look<Result: Sendable>(
    _ body: (borrowing LedgerTables) throws(DatabaseError) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(DatabaseError) { return try read(body) } catch { throw LedgerFault(error) }
  }

  func change<Result: Sendable>(
    _ body: (borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(LedgerError) { return try write(body) } catch { throw LedgerFault(error) }
  }
}
