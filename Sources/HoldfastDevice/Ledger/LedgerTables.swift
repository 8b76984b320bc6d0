import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import Synchronization

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

/// The SQL of the issuers that the device trusts.
extension LedgerTables {
  static let macIssuersSchema: StaticString = """
    ALTER TABLE issuers RENAME COLUMN point TO key;
    ALTER TABLE issuers ADD COLUMN algorithm TEXT NOT NULL DEFAULT 'ES256';
    """

  func issuer(_ keyID: KeyID) throws(DatabaseError) -> IssuerKey? {
    try database.one("SELECT algorithm, key FROM issuers WHERE kid = ?", .copying(keyID.bytes)) {
      (row) throws(DatabaseError) -> IssuerKey in
      switch try row.algorithm(0) {
      case .es256: return .signing(try row.fixedBytes(1))
      case .hs256: return .mac(try row.secret(1))
      }
    }
  }

  func isTrusted(_ keyID: KeyID) throws(DatabaseError) -> Bool {
    try database.oneUnsigned("SELECT 1 FROM issuers WHERE kid = ?", .copying(keyID.bytes)) != nil
  }

  func issuerCount() throws(DatabaseError) -> UInt64 {
    try database.oneUnsigned("SELECT count(*) FROM issuers") ?? 0
  }

  func issuers() throws(DatabaseError) -> [TrustedIssuer] {
    let sql: StaticString = """
      SELECT kid, algorithm, coalesce(floor, 0) FROM issuers LEFT JOIN generations USING (kid) ORDER BY kid
      """
    return try database.all(sql) { (row) throws(DatabaseError) in
      TrustedIssuer(
        keyID: try row.fixedBytes(0), algorithm: try row.algorithm(1), generationFloor: try row.unsigned(2))
    }
  }

  func insertIssuer(_ keyID: KeyID, _ issuer: borrowing IssuerKey) throws(DatabaseError) {
    let key: Value
    switch issuer {
    case .signing(let point): key = .copying(point.bytes)
    case .mac(let secret): key = secret.withBytes { .copying($0) }
    }
    try database.run(
      "INSERT INTO issuers (kid, key, algorithm) VALUES (?, ?, ?)", .copying(keyID.bytes), key,
      .text(IssuerAlgorithm(of: issuer).rawValue))
  }

  /// Says whether there was one.
  func deleteIssuer(_ keyID: KeyID) throws(DatabaseError) -> Bool {
    try database.run("DELETE FROM issuers WHERE kid = ?", .copying(keyID.bytes)) > 0
  }
}

/// An issuer whose tokens the device believes. It holds no secret.
package struct TrustedIssuer: Sendable, Equatable {
  package let keyID: KeyID
  package let algorithm: IssuerAlgorithm
  /// The highest generation that was accepted from it.
  package let generationFloor: UInt64
}

/// What an issuer's key is for, by its name in RFC 7518 §3.1.
package enum IssuerAlgorithm: String, Sendable {
  /// A public key: signatures.
  case es256 = "ES256"
  /// A key that the issuer shares with the device: MACs.
  case hs256 = "HS256"

  package init(of issuer: borrowing IssuerKey) {
    self = issuer.isMAC ? .hs256 : .es256
  }
}

extension Row {
  fileprivate borrowing func algorithm(_ column: Int) throws(DatabaseError) -> IssuerAlgorithm {
    guard let algorithm = IssuerAlgorithm(rawValue: try text(column)) else { throw .corrupt }
    return algorithm
  }

  /// Reads a secret of exactly `count` bytes; `corrupt` otherwise.
  borrowing func secret<let count: Int>(_ column: Int) throws(DatabaseError) -> Secret<count> {
    try withBytes(column) { (bytes) throws(DatabaseError) in
      guard let secret = Secret<count>(copying: bytes) else { throw .corrupt }
      return secret
    }
  }
}

/// The SQL of the audit log: a chain of entries, of which the oldest may be cut off behind a recorded head.
extension LedgerTables {
  static let auditBaseSchema: StaticString = """
    ALTER TABLE state ADD COLUMN audit_base_count INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE state ADD COLUMN audit_base_head BLOB NOT NULL
      DEFAULT x'0000000000000000000000000000000000000000000000000000000000000000';
    """

  /// Appends an entry to the audit log and its chain; `state` is then to be saved. Where that makes more entries than are to be
  /// kept, the oldest go.
  func append(_ event: AuditEvent, time: UInt64, to state: inout LedgerState) throws(DatabaseError) {
    try insert(event, time: time, to: &state)
    guard let bound = auditBound.count, state.audit.count - state.auditBase.count > bound else { return }
    // Some at once, so that their cut is one entry of many.
    let spared = min(bound / 16, Self.dropLimit)
    try cut(behind: state.audit.count - bound + spared, time: time, state: &state)
    try dropCutEntries(state)
  }

  /// Lets the log begin behind the entry `count`, which must be kept, and says so in the next entry. The entries themselves stay
  /// until ``dropCutEntries(_:)``, and are not looked at any more.
  func cut(behind count: UInt64, time: UInt64, state: inout LedgerState) throws(DatabaseError) {
    let head = try database.one("SELECT hash FROM audit WHERE sequence = ?", .unsigned(count)) {
      (row) throws(DatabaseError) -> Digest in try row.fixedBytes(0)
    }
    guard let head else { throw .corrupt }
    state.auditBase = AuditChain(count: count, head: head)
    try insert(.logCut(state.auditBase), time: time, to: &state)
  }

  /// Deletes some of the entries that were cut off; says whether there are more.
  @discardableResult
  func dropCutEntries(_ state: LedgerState) throws(DatabaseError) -> Bool {
    guard let first = try database.oneUnsigned("SELECT min(sequence) FROM audit"), first <= state.auditBase.count else {
      return false
    }
    let last = min(state.auditBase.count, first + Self.dropLimit - 1)
    try database.run("DELETE FROM audit WHERE sequence <= ?", .unsigned(last))
    return last < state.auditBase.count
  }

  /// How many entries are deleted at once, so that no round takes long.
  static var dropLimit: UInt64 { 1024 }

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

  /// At most `limit` rows of the audit log, from the one after `sequence` on.
  func auditRows(after sequence: UInt64, limit: UInt64) throws(DatabaseError) -> [AuditRow] {
    let sql: StaticString = "SELECT sequence, entry, hash FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?"
    return try database.all(sql, .unsigned(sequence), .unsigned(limit)) { (row) throws(DatabaseError) in
      AuditRow(sequence: try row.unsigned(0), entry: try row.bytes(1), hash: try row.bytes(2))
    }
  }
}

/// How many audit entries are kept; nil for all. Policy may change it while the ledger is being written.
final class AuditBound: Sendable {
  private let bound = Mutex<UInt64?>(nil)

  var count: UInt64? {
    get { bound.withLock { $0 } }
    set { bound.withLock { $0 = newValue } }
  }
}

/// A row of the audit log as it stands there.
struct AuditRow {
  let sequence: UInt64
  let entry: [UInt8]
  let hash: [UInt8]
}
