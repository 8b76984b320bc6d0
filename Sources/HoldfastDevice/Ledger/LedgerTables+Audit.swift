import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage
import Synchronization

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
