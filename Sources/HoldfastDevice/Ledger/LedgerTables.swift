import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

/// The ledger's tables: all of its SQL but the rounds'. Every method runs inside the caller's lock.
struct LedgerTables {
  let database: Database
  let auditBound = AuditBound()

  /// "HfDv".
  static let applicationID: Int32 = 0x4866_4476

  static let schema: [StaticString] = [
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
    usersSchema, macIssuersSchema, requestsSchema, auditBaseSchema,
  ]

  func insert(_ state: LedgerState) throws(DatabaseError) {
    try database.run(
      "INSERT INTO state VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", .copying(state.deviceID.bytes),
      .unsigned(state.clockFloor), .unsigned(state.forgottenThrough), .unsigned(state.bootCount),
      .unsigned(state.keptCount), .unsigned(state.audit.count), .copying(state.audit.head.bytes),
      value(state.policySeen), .optional(state.epoch), .optional(state.tpm), .unsigned(state.requestCount),
      .unsigned(state.auditBase.count), .copying(state.auditBase.head.bytes))
  }

  func state() throws(DatabaseError) -> LedgerState {
    let sql: StaticString = """
      SELECT device_id, clock_floor, forgotten_through, boot_count, kept_count, audit_count, audit_head, policy_seen,
        epoch, tpm, request_count, audit_base_count, audit_base_head
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
      return state
    }
    guard let state else { throw .corrupt }
    return state
  }

  func save(_ state: LedgerState) throws(DatabaseError) {
    let sql: StaticString = """
      UPDATE state SET device_id = ?, clock_floor = ?, forgotten_through = ?, boot_count = ?, kept_count = ?,
        audit_count = ?, audit_head = ?, policy_seen = ?, epoch = ?, tpm = ?, request_count = ?, audit_base_count = ?,
        audit_base_head = ?
      """
    try database.run(
      sql, .copying(state.deviceID.bytes), .unsigned(state.clockFloor), .unsigned(state.forgottenThrough),
      .unsigned(state.bootCount), .unsigned(state.keptCount), .unsigned(state.audit.count),
      .copying(state.audit.head.bytes), value(state.policySeen), .optional(state.epoch), .optional(state.tpm),
      .unsigned(state.requestCount), .unsigned(state.auditBase.count), .copying(state.auditBase.head.bytes))
  }

  /// Empties every table but the state and the audit log.
  func forgetAll() throws(DatabaseError) {
    for sql: StaticString in [
      "DELETE FROM issuers", "DELETE FROM generations", "DELETE FROM uses", "DELETE FROM nonces",
      "DELETE FROM requests",
      "DELETE FROM users", "DELETE FROM accounts", "DELETE FROM codes",
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
  /// The highest generation that was accepted from a key, or where the owner put it; 0 for a key that never was.
  func generationFloor(_ keyID: KeyID) throws(DatabaseError) -> UInt64 {
    try database.oneUnsigned("SELECT floor FROM generations WHERE kid = ?", .copying(keyID.bytes)) ?? 0
  }

  func setGenerationFloor(_ keyID: KeyID, to floor: UInt64) throws(DatabaseError) {
    try database.run("INSERT OR REPLACE INTO generations VALUES (?, ?)", .copying(keyID.bytes), .unsigned(floor))
  }
}

extension Row {
  /// Reads a blob of exactly `count` bytes; `corrupt` otherwise.
  borrowing func fixedBytes<let count: Int>(_ column: Int) throws(DatabaseError) -> FixedBytes<count> {
    let copy = try bytes(column)
    guard let bytes = FixedBytes<count>(copy.span) else { throw .corrupt }
    return bytes
  }
}
