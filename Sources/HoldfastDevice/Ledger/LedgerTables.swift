import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import Synchronization

/// The tables of the ledger. Every method runs while the caller holds the ledger's lock.
package struct LedgerTables {
  package let database: Database
  package let auditKeeping = AuditKeeping()

  /// Makes the tables of a database with ``schema``.
  package init(database: Database) { self.database = database }

  /// The letters "HfDv".
  package static let applicationID: Int32 = 0x4866_4476

  package static let schema: [StaticString] = [
    """
    CREATE TABLE state (
      id INTEGER PRIMARY KEY CHECK (id = 1), device_id BLOB NOT NULL, clock_floor INTEGER NOT NULL,
      forgotten_through INTEGER NOT NULL, boot_count INTEGER NOT NULL, kept_count INTEGER NOT NULL,
      audit_count INTEGER NOT NULL, audit_head BLOB NOT NULL, policy_seen BLOB
    ) STRICT;
    CREATE TABLE issuers (kid BLOB PRIMARY KEY NOT NULL, point BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE generations (kid BLOB PRIMARY KEY NOT NULL, floor INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE uses (
      kid BLOB NOT NULL, jti BLOB NOT NULL, expires INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (kid, jti)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX uses_by_expiry ON uses (expires);
    CREATE TABLE nonces (
      kid BLOB NOT NULL, jti BLOB NOT NULL, nonce BLOB NOT NULL, expires INTEGER NOT NULL,
      PRIMARY KEY (kid, jti, nonce)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX nonces_by_expiry ON nonces (expires);
    CREATE TABLE audit (sequence INTEGER PRIMARY KEY, entry BLOB NOT NULL, hash BLOB NOT NULL) STRICT;
    """,
    """
    ALTER TABLE state ADD COLUMN epoch INTEGER;
    ALTER TABLE state ADD COLUMN tpm TEXT;
    """,
    usersSchema, macIssuersSchema, requestsSchema, auditBaseSchema, ownerLockSchema, introductionsSchema,
    authenticatorsSchema, runsSchema, policyKeySchema, bulletinsSchema,
    homeSchema,
  ]

  package func insert(_ state: LedgerState) throws(DatabaseError) {
    try database.run(
      "INSERT INTO state VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", .copying(state.deviceID.bytes),
      .unsigned(state.clockFloor), .unsigned(state.forgottenThrough), .unsigned(state.bootCount),
      .unsigned(state.keptCount), .unsigned(state.audit.count), .copying(state.audit.head.bytes),
      value(state.policySeen), .optional(state.epoch), .optional(state.tpm), .unsigned(state.requestCount),
      .unsigned(state.auditBase.count), .copying(state.auditBase.head.bytes), .unsigned(state.bulletinCount),
      .unsigned(state.acknowledged))
  }

  package func state() throws(DatabaseError) -> LedgerState {
    let sql: StaticString = """
      SELECT device_id, clock_floor, forgotten_through, boot_count, kept_count, audit_count, audit_head, policy_seen,
        epoch, tpm, request_count, audit_base_count, audit_base_head, bulletin_count, audit_acknowledged
      FROM state
      """
    let state = try database.one(sql) { (row) throws(DatabaseError) in
      var state = LedgerState(deviceID: try row.fixedBytes(0), clockFloor: try row.unsigned(1))
      state.forgottenThrough = try row.unsigned(2)
      state.bootCount = try row.unsigned(3)
      state.keptCount = try row.unsigned(4)
      state.audit = AuditChain(count: try row.unsigned(5), head: try row.fixedBytes(6))
      if try !row.isNull(7) {
        state.policySeen = try row.bytes(7).isEmpty ? .unusable : .file(try row.fixedBytes(7))
      }
      if try !row.isNull(8) { state.epoch = try row.unsigned(8) }
      if try !row.isNull(9) { state.tpm = try row.text(9) }
      state.requestCount = try row.unsigned(10)
      state.auditBase = AuditChain(count: try row.unsigned(11), head: try row.fixedBytes(12))
      state.bulletinCount = try row.unsigned(13)
      state.acknowledged = try row.unsigned(14)
      return state
    }
    guard let state else { throw .corrupt }
    return state
  }

  package func save(_ state: LedgerState) throws(DatabaseError) {
    let sql: StaticString = """
      UPDATE state SET device_id = ?, clock_floor = ?, forgotten_through = ?, boot_count = ?, kept_count = ?,
        audit_count = ?, audit_head = ?, policy_seen = ?, epoch = ?, tpm = ?, request_count = ?, audit_base_count = ?,
        audit_base_head = ?, bulletin_count = ?, audit_acknowledged = ?
      """
    try database.run(
      sql, .copying(state.deviceID.bytes), .unsigned(state.clockFloor), .unsigned(state.forgottenThrough),
      .unsigned(state.bootCount), .unsigned(state.keptCount), .unsigned(state.audit.count),
      .copying(state.audit.head.bytes), value(state.policySeen), .optional(state.epoch), .optional(state.tpm),
      .unsigned(state.requestCount), .unsigned(state.auditBase.count), .copying(state.auditBase.head.bytes),
      .unsigned(state.bulletinCount), .unsigned(state.acknowledged))
  }

  /// Empties every table except the state and the audit log.
  package func forgetAll() throws(DatabaseError) {
    for sql: StaticString in [
      "DELETE FROM issuers", "DELETE FROM generations", "DELETE FROM uses", "DELETE FROM nonces",
      "DELETE FROM requests", "DELETE FROM introductions",
      "DELETE FROM users", "DELETE FROM accounts", "DELETE FROM codes",
      "DELETE FROM bulletins", "DELETE FROM revoked", "DELETE FROM minimum_versions", "DELETE FROM ended_keys",
      "DELETE FROM couriers",
    ] {
      try database.run(sql)
    }
  }

  private func value(_ seen: PolicySeen) -> Value {
    switch seen {
    case .none: .null
    case .unusable: .bytes([])
    case .file(let digest): .copying(digest.bytes)
    }
  }
}

extension LedgerTables {
  /// Returns the highest generation that was accepted from a key, or the floor that the owner set; 0 if there is none.
  package func generationFloor(_ keyID: KeyID) throws(DatabaseError) -> UInt64 {
    try database.oneUnsigned("SELECT floor FROM generations WHERE kid = ?", .copying(keyID.bytes)) ?? 0
  }

  package func setGenerationFloor(_ keyID: KeyID, to floor: UInt64) throws(DatabaseError) {
    try database.run("INSERT OR REPLACE INTO generations VALUES (?, ?)", .copying(keyID.bytes), .unsigned(floor))
  }
}

extension Row {
  /// Reads a blob of exactly `count` bytes.
  ///
  /// - Throws: `corrupt` for another length.
  borrowing func fixedBytes<Kind, let count: Int>(_ column: Int) throws(DatabaseError) -> TypedBytes<Kind, count> {
    let copy = try bytes(column)
    guard let bytes = TypedBytes<Kind, count>(copy.span) else { throw .corrupt }
    return bytes
  }
}

/// The SQL of the issuers that the device trusts.
extension LedgerTables {
  static let macIssuersSchema: StaticString = """
    ALTER TABLE issuers RENAME COLUMN point TO key;
    ALTER TABLE issuers ADD COLUMN algorithm TEXT NOT NULL DEFAULT 'ES256';
    """

  package func issuer(_ keyID: KeyID) throws(DatabaseError) -> IssuerKey? {
    try database.one("SELECT algorithm, key FROM issuers WHERE kid = ?", .copying(keyID.bytes)) {
      (row) throws(DatabaseError) -> IssuerKey in
      switch try row.algorithm(0) {
      case .es256: return .signing(try row.fixedBytes(1))
      case .hs256: return .mac(try row.secret(1))
      }
    }
  }

  package func isTrusted(_ keyID: KeyID) throws(DatabaseError) -> Bool {
    try database.oneUnsigned("SELECT 1 FROM issuers WHERE kid = ?", .copying(keyID.bytes)) != nil
  }

  package func issuerCount() throws(DatabaseError) -> UInt64 {
    try database.oneUnsigned("SELECT count(*) FROM issuers") ?? 0
  }

  package func issuers() throws(DatabaseError) -> [TrustedIssuer] {
    let sql: StaticString = """
      SELECT kid, algorithm, coalesce(floor, 0), trusted_from, trusted_until, label
      FROM issuers LEFT JOIN generations USING (kid) ORDER BY kid
      """
    return try database.all(sql) { (row) throws(DatabaseError) in
      TrustedIssuer(
        keyID: try row.fixedBytes(0), algorithm: try row.algorithm(1), generationFloor: try row.unsigned(2),
        terms: try row.terms(3))
    }
  }

  package func insertIssuer(_ keyID: KeyID, _ issuer: borrowing IssuerKey) throws(DatabaseError) {
    let key: Value
    switch issuer {
    case .signing(let point): key = .copying(point.bytes)
    case .mac(let secret): key = secret.withBytes { .copying($0) }
    }
    try database.run(
      "INSERT INTO issuers (kid, key, algorithm) VALUES (?, ?, ?)", .copying(keyID.bytes), key,
      .text(IssuerAlgorithm(of: issuer).rawValue))
  }

  /// Deletes an issuer. Returns whether there was one.
  package func deleteIssuer(_ keyID: KeyID) throws(DatabaseError) -> Bool {
    try database.run("DELETE FROM issuers WHERE kid = ?", .copying(keyID.bytes)) > 0
  }
}

/// An issuer whose tokens the device accepts. It holds no secret.
package struct TrustedIssuer: Sendable, Equatable {
  /// The id of the issuer's key.
  package let keyID: KeyID
  /// The algorithm of the issuer's key.
  package let algorithm: IssuerAlgorithm
  /// The highest generation that was accepted from the issuer, or the floor that the owner set.
  package let generationFloor: UInt64
  /// The time during which the issuer is trusted, and the owner's label.
  package var terms = TrustTerms()
}

/// The algorithm of an issuer's key, by its name in RFC 7518 §3.1.
package enum IssuerAlgorithm: String, Sendable {
  /// A public key, which verifies signatures.
  case es256 = "ES256"
  /// A key that the issuer shares with the device, which verifies MACs.
  case hs256 = "HS256"

  /// Makes the algorithm of an issuer's key.
  package init(of issuer: borrowing IssuerKey) {
    self = issuer.isMAC ? .hs256 : .es256
  }
}

extension Row {
  borrowing func algorithm(_ column: Int) throws(DatabaseError) -> IssuerAlgorithm {
    guard let algorithm = IssuerAlgorithm(rawValue: try text(column)) else { throw .corrupt }
    return algorithm
  }

  /// Reads a secret of exactly `count` bytes.
  ///
  /// - Throws: `corrupt` for another length.
  borrowing func secret<let count: Int>(_ column: Int) throws(DatabaseError) -> Secret<count> {
    try withBytes(column) { (bytes) throws(DatabaseError) in
      guard let secret = Secret<count>(copying: bytes) else { throw .corrupt }
      return secret
    }
  }
}

/// The SQL of the audit log, a chain of entries, of which the oldest may be cut off at a recorded head.
extension LedgerTables {
  static let auditBaseSchema: StaticString = """
    ALTER TABLE state ADD COLUMN audit_base_count INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE state ADD COLUMN audit_base_head BLOB NOT NULL
      DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000';
    """

  /// Appends an entry to the audit log and its chain; the caller then saves `state`. If the log exceeds its bound, the oldest
  /// entries are cut off.
  package func append(_ event: AuditEvent, time: UInt64, to state: inout LedgerState) throws(DatabaseError) {
    try insert(event, time: time, to: &state)
    let keeping = auditKeeping.rules
    guard let bound = keeping.bound, state.audit.count - state.auditBase.count > bound else { return }
    // Cutting several entries at once makes an entry about the cut rare.
    let end = state.audit.count - bound + min(bound / 16, Self.dropLimit)
    let lostAfter = max(state.acknowledged, state.auditBase.count)
    try cut(behind: end, time: time, state: &state)
    if keeping.home != nil, end > lostAfter {
      try insert(.entriesLost(count: end - lostAfter), time: time, to: &state)
    }
    try dropCutEntries(state)
  }

  /// Makes the log begin after the entry `count`, which must exist, and records the cut in the next entry. The earlier
  /// entries stay until ``dropCutEntries(_:)``, but are ignored.
  package func cut(behind count: UInt64, time: UInt64, state: inout LedgerState) throws(DatabaseError) {
    let head = try database.one("SELECT hash FROM audit WHERE sequence = ?", .unsigned(count)) {
      (row) throws(DatabaseError) -> Digest in try row.fixedBytes(0)
    }
    guard let head else { throw .corrupt }
    state.auditBase = AuditChain(count: count, head: head)
    try insert(.logCut(state.auditBase), time: time, to: &state)
  }

  /// Deletes some of the entries that were cut off. Returns whether there are more.
  @discardableResult
  package func dropCutEntries(_ state: LedgerState) throws(DatabaseError) -> Bool {
    guard let first = try database.oneUnsigned("SELECT min(sequence) FROM audit"), first <= state.auditBase.count else {
      return false
    }
    let last = min(state.auditBase.count, first + Self.dropLimit - 1)
    try database.run("DELETE FROM audit WHERE sequence <= ?", .unsigned(last))
    return last < state.auditBase.count
  }

  /// The most entries that are deleted at once, so that no round takes long.
  package static var dropLimit: UInt64 { 1024 }

  private func insert(_ event: AuditEvent, time: UInt64, to state: inout LedgerState) throws(DatabaseError) {
    var entry: [UInt8] = []
    AuditEntry(sequence: state.audit.count + 1, time: time, event: event).encode(into: &entry)
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      try state.audit.advance(over: entry.span, using: &cryptography)
    } catch { throw .misuse }
    try database.run(
      "INSERT INTO audit VALUES (?, ?, ?)", .unsigned(state.audit.count), .bytes(entry),
      .copying(state.audit.head.bytes))
  }

  /// Returns at most `limit` rows of the audit log, from the one after `sequence` on.
  package func auditRows(after sequence: UInt64, limit: UInt64) throws(DatabaseError) -> [AuditRow] {
    let sql: StaticString = "SELECT sequence, entry, hash FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?"
    return try database.all(sql, .unsigned(sequence), .unsigned(limit)) { (row) throws(DatabaseError) in
      AuditRow(sequence: try row.unsigned(0), entry: try row.bytes(1), hash: try row.bytes(2))
    }
  }
}

/// A row of the audit log, not decoded.
package struct AuditRow {
  package let sequence: UInt64
  package let entry: [UInt8]
  package let hash: [UInt8]
}
