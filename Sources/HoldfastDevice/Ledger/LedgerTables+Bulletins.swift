import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import Synchronization

/// The SQL of bulletins: their numbers, and what they say about tokens, apps and keys.
extension LedgerTables {
  static let bulletinsSchema: StaticString = """
    CREATE TABLE bulletins (
      kid BLOB NOT NULL, audience BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (kid, audience)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE revoked (
      kid BLOB NOT NULL, jti BLOB NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (kid, jti)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX revoked_by_time ON revoked (until);
    CREATE TABLE minimum_versions (
      kid BLOB NOT NULL, subject TEXT NOT NULL, major INTEGER NOT NULL, minor INTEGER NOT NULL, patch INTEGER NOT NULL,
      PRIMARY KEY (kid, subject)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE ended_keys (kid BLOB PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
    ALTER TABLE issuers ADD COLUMN introduced_by BLOB;
    ALTER TABLE state ADD COLUMN bulletin_count INTEGER NOT NULL DEFAULT 0;
    """
  /// The most minimum versions of one key.
  private static var versionLimit: UInt64 { 256 }

  /// Returns the numbers of a key's newest bulletins for these audiences.
  package func bulletins(of issuer: KeyID, for audiences: [AudienceID]) throws(DatabaseError) -> BulletinList {
    let rows = try database.all(
      "SELECT audience, number FROM bulletins WHERE kid = ?", .copying(issuer.bytes)
    ) { (row) throws(DatabaseError) in BulletinList.Row(audience: try row.fixedBytes(0), number: try row.unsigned(1)) }
    return BulletinList(
      audiences.map { audience in
        rows.first { $0.audience == audience } ?? BulletinList.Row(audience: audience, number: 0)
      })
  }

  /// Returns the state of the same list, which `known` keeps until another bulletin is taken.
  func bulletinState(
    of issuer: KeyID, for audiences: [AudienceID], state: LedgerState, known: BulletinStates
  ) throws(DatabaseError) -> BulletinState {
    if let known = known.state(of: issuer, at: state.bulletinCount) { return known }
    var cryptography = OpenSSLCryptography()
    let list = try bulletins(of: issuer, for: audiences)
    let result: BulletinState
    do throws(CryptographyFailure) { result = try list.state(using: &cryptography) } catch { throw .misuse }
    known.keep(result, of: issuer, at: state.bulletinCount)
    return result
  }

  /// Completes the facts about a round with those from bulletins of its key.
  ///
  /// After the owner moved the clock floor back, a token may count again whose revocation was dropped. It stays revoked if there were
  /// bulletins of its key.
  func addBulletins(to snapshot: inout LedgerSnapshot, for round: borrowing AppraisalInput) throws(DatabaseError) {
    guard snapshot.hasBulletins, let issuer = round.verifyingKey else { return }
    let revoked: StaticString = "SELECT 1 FROM revoked WHERE kid = ? AND jti = ?"
    let isListed = try database.oneUnsigned(revoked, .copying(issuer.bytes), .copying(round.tokenID.bytes)) != nil
    snapshot.isRevoked = isListed
    if !isListed, round.expires <= snapshot.forgottenThrough {
      snapshot.isRevoked =
        try database.oneUnsigned("SELECT 1 FROM bulletins WHERE kid = ?", .copying(issuer.bytes)) != nil
    }
    snapshot.minimumVersion = try minimumVersion(of: round.subject, issuer) ?? .zero
  }

  private func minimumVersion(of subject: BoundedText<64>, _ issuer: KeyID) throws(DatabaseError) -> AppVersion? {
    let sql: StaticString = "SELECT major, minor, patch FROM minimum_versions WHERE kid = ? AND subject = ?"
    return try database.one(sql, .copying(issuer.bytes), .text(subject.description)) { (row) throws(DatabaseError) in
      AppVersion(major: try row.unsigned(0), minor: try row.unsigned(1), patch: try row.unsigned(2))
    }
  }

  /// Takes a bulletin, in the order of docs/couriers.md. Unless the result is `taken`, the caller undoes everything.
  ///
  /// - Parameters:
  ///   - bulletin: the bulletin.
  ///   - audiences: the device and its groups.
  ///   - limits: the room of the ledger.
  ///   - terms: the device's time, and what the policy permits.
  ///   - state: the state of the ledger, which the caller saves.
  package func take(
    _ bulletin: borrowing VerifiedBulletin, for audiences: [AudienceID], limits: LedgerLimits, on terms: BulletinTerms,
    state: inout LedgerState
  ) throws(DatabaseError) -> BulletinResult {
    let claims = bulletin.claims
    guard try trusts(bulletin.issuer, at: state.time(realClock: terms.realClock)) else { return .refused }
    let list = try bulletins(of: bulletin.issuer, for: audiences)
    guard let number = list.number(for: claims.audience) else { return .notAddressed }
    if claims.number <= number { return .known }
    if claims.predecessor > number { return .missed }
    guard claims.issuedAt <= terms.latestIssue, claims.introduced.count == 0 || terms.mayIntroduce else {
      return .refused
    }
    return try apply(bulletin, limits: limits, realClock: terms.realClock, state: &state)
  }

  /// Records a bulletin that the device takes, and does what its claims say.
  ///
  /// - Returns: `taken`, or `full`; the caller then undoes everything.
  private func apply(
    _ bulletin: borrowing VerifiedBulletin, limits: LedgerLimits, realClock: UInt64?, state: inout LedgerState
  ) throws(DatabaseError) -> BulletinResult {
    let (issuer, claims) = (bulletin.issuer, bulletin.claims)
    let kid = Value.copying(issuer.bytes)
    state.clockFloor = max(state.clockFloor, claims.issuedAt)
    state.bulletinCount += 1
    let now = state.time(realClock: realClock)
    try database.run(
      "INSERT OR REPLACE INTO bulletins VALUES (?, ?, ?)", kid, .copying(claims.audience.bytes),
      .unsigned(claims.number))
    try append(.bulletinTaken(issuer, claims.audience, number: claims.number), time: now, to: &state)
    guard try revoke(claims, kid, limits: limits, clockFloor: state.clockFloor) else { return .full }
    if let floor = claims.generation {
      let from = try generationFloor(issuer)
      if floor > from {
        try setGenerationFloor(issuer, to: floor)
        try append(.generationFloorMoved(issuer, from: from, to: floor), time: now, to: &state)
      }
    }
    guard try raiseVersions(claims, issuer) else { return .full }
    guard try introduce(claims, kid, limits: limits, time: now, state: &state) else { return .full }
    try claims.ended.forEach { (key) throws(DatabaseError) in try end(key.keyID, by: issuer, time: now, state: &state) }
    try claims.users.forEach { (change) throws(DatabaseError) in
      if let until = change.until {
        _ = try lock(change.user, until: until, time: now, state: &state)
      } else {
        _ = try remove(change.user, time: now, state: &state)
      }
    }
    return .taken
  }

  /// Records the revoked tokens. Returns whether there was room.
  private func revoke(
    _ claims: borrowing BulletinClaims, _ kid: Value, limits: LedgerLimits, clockFloor: UInt64
  ) throws(DatabaseError) -> Bool {
    guard claims.revoked.count > 0 else { return true }
    try database.run("DELETE FROM revoked WHERE until <= ?", .unsigned(clockFloor))
    let sql: StaticString = """
      INSERT INTO revoked VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET until = max(until, excluded.until)
      """
    try claims.revoked.forEach { (token) throws(DatabaseError) in
      guard token.until > clockFloor else { return }
      try database.run(sql, kid, .copying(token.tokenID.bytes), .unsigned(token.until))
    }
    return try database.oneUnsigned("SELECT count(*) FROM revoked") ?? 0 <= limits.revocationCount
  }

  /// Raises minimum versions. Returns whether there was room.
  private func raiseVersions(_ claims: borrowing BulletinClaims, _ issuer: KeyID) throws(DatabaseError) -> Bool {
    guard claims.versions.count > 0 else { return true }
    try claims.versions.forEach { (least) throws(DatabaseError) in
      if let known = try minimumVersion(of: least.subject, issuer), known >= least.version { return }
      try database.run(
        "INSERT OR REPLACE INTO minimum_versions VALUES (?, ?, ?, ?, ?)", .copying(issuer.bytes),
        .text(least.subject.description), .unsigned(least.version.major), .unsigned(least.version.minor),
        .unsigned(least.version.patch))
    }
    let count = try database.oneUnsigned(
      "SELECT count(*) FROM minimum_versions WHERE kid = ?", .copying(issuer.bytes))
    return count ?? 0 <= Self.versionLimit
  }

  /// Trusts the keys that the bulletin introduces, except those that have ended. Returns whether there was room.
  private func introduce(
    _ claims: borrowing BulletinClaims, _ kid: Value, limits: LedgerLimits, time: UInt64, state: inout LedgerState
  ) throws(DatabaseError) -> Bool {
    var cryptography = OpenSSLCryptography()
    try claims.introduced.forEach { (key) throws(DatabaseError) in
      let keyID: KeyID
      do throws(CryptographyFailure) { keyID = try HoldfastCore.keyID(of: key.point, using: &cryptography) } catch {
        throw .misuse
      }
      let isEnded = try database.oneUnsigned("SELECT 1 FROM ended_keys WHERE kid = ?", .copying(keyID.bytes)) != nil
      let isKnown = try isTrusted(keyID)
      guard !isEnded, !isKnown else { return }
      try insertIssuer(keyID, .signing(key.point))
      try save(TrustTerms(from: key.from, until: key.until), of: keyID)
      try database.run("UPDATE issuers SET introduced_by = ? WHERE kid = ?", kid, .copying(keyID.bytes))
      try append(.issuerTrusted(keyID), time: time, to: &state)
    }
    return try issuerCount() <= limits.issuerCount
  }

  /// Makes an introduced key one of the owner's, which no bulletin of another key ends. Returns whether it was introduced.
  func adopt(_ keyID: KeyID) throws(DatabaseError) -> Bool {
    try database.run(
      "UPDATE issuers SET introduced_by = NULL WHERE kid = ? AND introduced_by IS NOT NULL", .copying(keyID.bytes)) > 0
  }

  /// Ends the trust in a key, if it is `issuer` itself or was introduced by it.
  private func end(
    _ keyID: KeyID, by issuer: KeyID, time: UInt64, state: inout LedgerState
  ) throws(DatabaseError) {
    let own: StaticString = "SELECT 1 FROM issuers WHERE kid = ?1 AND (kid = ?2 OR introduced_by = ?2)"
    guard try database.oneUnsigned(own, .copying(keyID.bytes), .copying(issuer.bytes)) != nil,
      try deleteIssuer(keyID)
    else { return }
    try database.run("INSERT OR REPLACE INTO ended_keys VALUES (?)", .copying(keyID.bytes))
    try append(.issuerRemoved(keyID), time: time, to: &state)
  }
}

/// The states of the lists of bulletins, by key, after a number of bulletins.
final class BulletinStates: Sendable {
  private let states = Mutex<(count: UInt64, states: [KeyID: BulletinState])>((0, [:]))

  func state(of issuer: KeyID, at count: UInt64) -> BulletinState? {
    states.withLock { $0.count == count ? $0.states[issuer] : nil }
  }

  func removeAll() {
    states.withLock { $0 = (0, [:]) }
  }

  func keep(_ state: BulletinState, of issuer: KeyID, at count: UInt64) {
    states.withLock { known in
      if known.count != count { known = (count, [:]) }
      known.states[issuer] = state
    }
  }
}

extension Ledger {
  /// Returns the numbers of the newest bulletins of a key; nil if the key is not trusted at `now` or signs no bulletins.
  func bulletins(of issuer: KeyID, realClock: UInt64?) throws(LedgerFault) -> BulletinList? {
    let audiences = audiences
    return try look { (tables) throws(DatabaseError) -> BulletinList? in
      let now = try tables.state().time(realClock: realClock)
      guard try tables.trusts(issuer, at: now), case .signing? = try tables.issuer(issuer) else { return nil }
      return try tables.bulletins(of: issuer, for: audiences)
    }
  }

  /// Takes a bulletin in one durable transaction. Any result but `taken` changes nothing.
  func take(
    _ bulletin: borrowing VerifiedBulletin, on terms: BulletinTerms
  ) throws(LedgerError) -> BulletinResult {
    let (audiences, limits) = (audiences, limits)
    return try write(isKept: { $0 == .taken }) { (tables, state) throws(DatabaseError) -> BulletinResult in
      try tables.take(bulletin, for: audiences, limits: limits, on: terms, state: &state)
    }
  }
}
