import HoldfastCore
import HoldfastStorage

/// The SQL of the home of the audit log: keys for agreement, the entries that were acknowledged, and the couriers.
extension LedgerTables {
  static let homeSchema: StaticString = """
    ALTER TABLE issuers ADD COLUMN agreement BLOB;
    ALTER TABLE state ADD COLUMN audit_acknowledged INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE couriers (
      kid BLOB NOT NULL, jti BLOB NOT NULL, subject TEXT NOT NULL, pages INTEGER NOT NULL, receipts INTEGER NOT NULL,
      bulletins INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (kid, jti)
    ) STRICT, WITHOUT ROWID;
    """
  /// The most couriers that are distinguished. Beyond them, those that came least recently are dropped.
  static var courierLimit: UInt64 { 1000 }

  /// Returns the public key for agreement that an issuer announced next to its key; nil if it announced none.
  func agreementKey(of issuer: KeyID) throws(DatabaseError) -> P256Point? {
    let sql: StaticString = "SELECT agreement FROM issuers WHERE kid = ? AND agreement IS NOT NULL"
    return try database.one(sql, .copying(issuer.bytes)) { (row) throws(DatabaseError) -> P256Point in
      try row.fixedBytes(0)
    }
  }

  func setAgreementKey(_ point: P256Point, of issuer: KeyID) throws(DatabaseError) {
    try database.run("UPDATE issuers SET agreement = ? WHERE kid = ?", .copying(point.bytes), .copying(issuer.bytes))
  }

  /// Returns the chain after an entry that is kept, or at which the log was cut; nil for any other.
  package func auditChain(at sequence: UInt64, state: LedgerState) throws(DatabaseError) -> AuditChain? {
    if sequence == state.auditBase.count { return state.auditBase }
    guard sequence > state.auditBase.count else { return nil }
    let sql: StaticString = "SELECT hash FROM audit WHERE sequence = ?"
    let head = try database.one(sql, .unsigned(sequence)) { (row) throws(DatabaseError) -> Digest in
      try row.fixedBytes(0)
    }
    return head.map { AuditChain(count: sequence, head: $0) }
  }

  /// Returns whether the log is full of entries that its home has not acknowledged, so that no round may be accepted.
  func isAuditLogFull(_ state: LedgerState) -> Bool {
    auditKeeping.rules.isFull(
      kept: state.audit.count - state.auditBase.count, unacknowledged: state.audit.count - state.acknowledged)
  }

  /// Adds to the counts of a courier.
  func add(_ counts: CourierCounts, of courier: Courier, time: UInt64) throws(DatabaseError) {
    let sql: StaticString = """
      INSERT INTO couriers VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET pages = pages + excluded.pages,
        receipts = receipts + excluded.receipts, bulletins = bulletins + excluded.bulletins, last = excluded.last
      """
    try database.run(
      sql, key(courier.issuer), .copying(courier.tokenID.bytes), .text(courier.subject.description),
      .unsigned(counts.pages), .unsigned(counts.receipts), .unsigned(counts.bulletins), .unsigned(time))
  }

  func dropOldCouriers() throws(DatabaseError) {
    let sql: StaticString = """
      DELETE FROM couriers WHERE (kid, jti) IN (SELECT kid, jti FROM couriers ORDER BY last DESC LIMIT -1 OFFSET ?)
      """
    try database.run(sql, .unsigned(Self.courierLimit))
  }

  /// Returns the couriers, the one that came last first.
  func couriers() throws(DatabaseError) -> [CourierRecord] {
    let sql: StaticString =
      "SELECT kid, jti, subject, pages, receipts, bulletins, last FROM couriers ORDER BY last DESC, jti"
    return try database.all(sql) { (row) throws(DatabaseError) -> CourierRecord in try CourierRecord(row) }
  }
}

extension CourierRecord {
  fileprivate init(_ row: borrowing Row) throws(DatabaseError) {
    let issuer: KeyID? = try row.bytes(0).isEmpty ? nil : try row.fixedBytes(0)
    guard let subject = BoundedText<64>(try row.text(2)) else { throw .corrupt }
    courier = Courier(issuer: issuer, tokenID: try row.fixedBytes(1), subject: subject)
    counts = CourierCounts(
      pages: try row.unsigned(3), receipts: try row.unsigned(4), bulletins: try row.unsigned(5))
    last = try row.unsigned(6)
  }
}

extension Ledger {
  /// Records the key for agreement that an issuer announced next to its key. Returns false if it is known, or if the issuer is not
  /// trusted.
  @discardableResult
  package func setAgreementKey(_ point: P256Point, of issuer: KeyID) throws(LedgerFault) -> Bool {
    try change { (tables, _) throws(DatabaseError) in
      guard try tables.isTrusted(issuer), try tables.agreementKey(of: issuer) != point else { return false }
      try tables.setAgreementKey(point, of: issuer)
      return true
    }
  }

  /// Returns the public key for agreement of an issuer that is trusted at `now`; nil if it announced none.
  func agreementKey(of issuer: KeyID, realClock: UInt64?) throws(LedgerFault) -> P256Point? {
    try look { (tables) throws(DatabaseError) -> P256Point? in
      let now = try tables.state().time(realClock: realClock)
      return try tables.trusts(issuer, at: now) ? try tables.agreementKey(of: issuer) : nil
    }
  }

  /// Makes a page of the audit log.
  ///
  /// - Parameters:
  ///   - from: the number of its first entry; 0 for `next`, or the first one that was not acknowledged if that is later.
  ///   - next: the number of the entry after the page before.
  /// - Returns: nil if there is no such entry.
  func auditPage(from: UInt64, next: UInt64) throws(LedgerFault) -> AuditPage? {
    try look { (tables) throws(DatabaseError) -> AuditPage? in
      let state = try tables.state()
      let first = from == 0 ? max(state.acknowledged + 1, state.auditBase.count + 1, next) : from
      guard let base = try tables.auditChain(at: first - 1, state: state),
        base.count < state.audit.count
      else { return nil }
      var page = AuditPage(after: base, of: state.audit, cut: state.auditBase.count)
      for row in try tables.auditRows(after: base.count, limit: 256) {
        guard page.append(row.entry) else { break }
      }
      return page
    }
  }

  /// Returns the number of the last audit entry that the log's home has acknowledged.
  package func acknowledgedAuditCount() throws(LedgerFault) -> UInt64 {
    try look { (tables) throws(DatabaseError) in try tables.state().acknowledged }
  }

  /// Records that the home of the log has the entries up to a number. Entries that were cut off need no receipt.
  ///
  /// - Returns: `taken`; `known`; `refused` if the log has another entry there or none, which is recorded unless the log is full.
  func acknowledgeAudit(
    _ chain: AuditChain, by home: KeyID, realClock: UInt64?
  ) throws(LedgerError) -> BulletinResult {
    try write(isKept: { $0 != .known }) { (tables, state) throws(DatabaseError) -> BulletinResult in
      guard chain.count > max(state.acknowledged, state.auditBase.count) else { return .known }
      guard try tables.auditChain(at: chain.count, state: state) == chain else {
        if !tables.isAuditLogFull(state) {
          let event = AuditEvent.receiptRefused(home, count: chain.count)
          try tables.append(event, time: state.time(realClock: realClock), to: &state)
        }
        return .refused
      }
      state.acknowledged = chain.count
      return .taken
    }
  }

  /// Returns the couriers, the one that came last first.
  package func couriers() throws(LedgerFault) -> [CourierRecord] {
    try look { (tables) throws(DatabaseError) in try tables.couriers() }
  }
}
