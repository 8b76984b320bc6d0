import HoldfastCore
import HoldfastKeys
import HoldfastOpenSSL
import HoldfastStorage

/// What the owner of a device does with its ledger, whether or not it is being served. Each is audited.
extension Ledger {
  /// Trusts an issuer; says whether it is new.
  ///
  /// Throws `tooManyIssuers` beyond 64, `keyIDTaken` for another key of the same id, `busy`, `failed`. `realClock` is in
  /// Unix seconds.
  @discardableResult
  public func trust(_ issuer: PublicKeyJWK, realClock: UInt64?) throws(LedgerFault) -> Bool {
    let keyID: KeyID
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      keyID = try HoldfastCore.keyID(of: issuer.point, using: &cryptography)
    } catch { throw .failed }
    let limit = limits.issuerCount
    let outcome = try change { (tables, state) throws(DatabaseError) -> Result<Bool, LedgerFault> in
      if let known = try tables.issuer(keyID) {
        return known == issuer.point ? .success(false) : .failure(.keyIDTaken)
      }
      guard try UInt64(tables.issuers().count) < limit else { return .failure(.tooManyIssuers) }
      try tables.insertIssuer(keyID, issuer.point)
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

  /// Moves the clock floor ahead by hand, to `floor` in Unix seconds.
  ///
  /// Throws `floorNotAhead` unless that is later than it is, `busy`, `failed`.
  public func moveClockFloor(to floor: UInt64, realClock: UInt64?) throws(LedgerFault) {
    let isAhead = try change { (tables, state) throws(DatabaseError) in
      guard floor > state.clockFloor, floor <= maximumInteger else { return false }
      let from = state.clockFloor
      state.clockFloor = floor
      try tables.append(
        .clockFloorMoved(from: from, to: floor), time: state.time(realClock: realClock), to: &state)
      return true
    }
    guard isAhead else { throw .floorNotAhead }
  }

  /// What there is to show. Throws `busy`, `failed`.
  public func summary() throws(LedgerFault) -> LedgerSummary {
    try look { (tables) throws(DatabaseError) in
      let state = try tables.state()
      return LedgerSummary(
        clockFloor: state.clockFloor, bootCount: state.bootCount, keptCount: state.keptCount, audit: state.audit)
    }
  }

  func look<Result: Sendable>(
    _ body: (borrowing LedgerTables) throws(DatabaseError) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(DatabaseError) { return try read(body) } catch { throw LedgerFault(error) }
  }

  private func change<Result: Sendable>(
    _ body: (borrowing LedgerTables, inout LedgerState) throws(DatabaseError) -> Result
  ) throws(LedgerFault) -> Result {
    do throws(DatabaseError) { return try write(body) } catch { throw LedgerFault(error) }
  }
}

/// What a ledger says of itself.
public struct LedgerSummary: Sendable, Equatable {
  /// Unix seconds: the device's time is never before it.
  public let clockFloor: UInt64
  /// How often the server was started.
  public let bootCount: UInt64
  /// How many counted tokens and nonces are kept.
  public let keptCount: UInt64
  /// How many audit entries there are, and the hash of the last one.
  public let audit: AuditChain
}
