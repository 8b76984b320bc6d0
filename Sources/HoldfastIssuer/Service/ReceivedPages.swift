import HoldfastCore
import HoldfastStorage

/// The state of a device's audit log at its home.
package struct ReceivedLog: Sendable, Equatable {
  /// The last entry before which none is missing, and its hash; nil if the first ones are missing.
  package var through: AuditChain?
  /// The number of entries that the device had when it made the newest page.
  package var count: UInt64 = 0
  /// The number of entries that the device no longer keeps, according to the newest page.
  package var cut: UInt64 = 0
  /// The number of the first entry that is missing and that the device may still have; nil if none is.
  package var missing: UInt64? {
    let last = max(through?.count ?? 0, cut)
    return last < count ? last + 1 : nil
  }
  /// Whether a page contradicted an earlier one: the device was restored from a copy, or somebody changed its log.
  package var isForked = false

  /// Creates the state of a log of which nothing is known.
  package init() {}
}

/// The backend's record of pages of audit logs that couriers brought, in any order.
///
/// Each page is a piece of the chain. An entry that is known already must have the same hash, also the one before the first of a page,
/// whose contents may not be known yet.
extension IssuedBaselinesDatabase {
  static let auditSchema: StaticString = """
    CREATE TABLE audit (
      device BLOB NOT NULL, sequence INTEGER NOT NULL, head BLOB NOT NULL, entry BLOB, PRIMARY KEY (device, sequence)
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE audit_log (
      device BLOB PRIMARY KEY, through INTEGER NOT NULL, cut INTEGER NOT NULL, count INTEGER NOT NULL,
      forked INTEGER NOT NULL
    ) WITHOUT ROWID, STRICT;
    """

  /// Durably records a page of a device's log, as far as it is new.
  ///
  /// - Returns: the state of the log. After a fork, nothing of the page is recorded but the fork.
  package mutating func store(
    _ page: AuditPage, links: [AuditLink], of device: DeviceID
  ) throws(ServiceLedgerFault) -> ReceivedLog {
    let id = Value.copying(device.bytes)
    do throws(DatabaseError) {
      return try database.transaction { () throws(DatabaseError) in
        try database.run(
          "INSERT OR IGNORE INTO audit_log (device, through, cut, count, forked) VALUES (?, 0, 0, 0, 0)", id)
        guard try isConsistent(page, links, id) else {
          try database.run("UPDATE audit_log SET forked = 1 WHERE device = ?", id)
          return try received(id)
        }
        try record(page.base, nil, id)
        for link in links { try record(AuditChain(count: link.entry.sequence, head: link.head), link.bytes, id) }
        try database.run(
          "UPDATE audit_log SET count = max(count, ?), cut = max(cut, ?) WHERE device = ?", .unsigned(page.end.count),
          .unsigned(page.cut), id)
        try advance(id)
        return try received(id)
      }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }

  private func isConsistent(_ page: AuditPage, _ links: [AuditLink], _ id: Value) throws(DatabaseError) -> Bool {
    let chains = [page.base, page.end] + links.map { AuditChain(count: $0.entry.sequence, head: $0.head) }
    for chain in chains {
      let sql: StaticString = "SELECT head FROM audit WHERE device = ? AND sequence = ?"
      guard let known = try database.oneBytes(sql, id, .unsigned(chain.count)) else { continue }
      guard known == [UInt8](chain.head.bytes) else { return false }
    }
    return true
  }

  private func record(_ chain: AuditChain, _ entry: [UInt8]?, _ id: Value) throws(DatabaseError) {
    let sql: StaticString = """
      INSERT INTO audit (device, sequence, head, entry) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET entry = coalesce(entry, excluded.entry)
      """
    try database.run(sql, id, .unsigned(chain.count), .copying(chain.head.bytes), .optional(entry))
  }

  /// Moves the end of the entries before which none is missing. The log begins behind those that the device no longer keeps.
  private func advance(_ id: Value) throws(DatabaseError) {
    let sql: StaticString = """
      UPDATE audit_log SET through = (
        SELECT min(sequence) FROM audit a WHERE a.device = audit_log.device
          AND a.sequence >= max(audit_log.through, audit_log.cut) AND NOT EXISTS (
            SELECT 1 FROM audit b WHERE b.device = a.device AND b.sequence = a.sequence + 1 AND b.entry IS NOT NULL))
      WHERE device = ? AND EXISTS (
        SELECT 1 FROM audit WHERE device = audit_log.device AND sequence = max(audit_log.through, audit_log.cut))
      """
    try database.run(sql, id)
  }

  private func received(_ id: Value) throws(DatabaseError) -> ReceivedLog {
    let sql: StaticString = """
      SELECT l.through, a.head, l.count, l.forked, l.cut FROM audit_log l
        LEFT JOIN audit a ON a.device = l.device AND a.sequence = l.through WHERE l.device = ?
      """
    let log = try database.one(sql, id) { (row) throws(DatabaseError) -> ReceivedLog in try ReceivedLog(row) }
    return log ?? ReceivedLog()
  }

  /// Returns the state of a device's log.
  package func receivedLog(of device: DeviceID) throws(ServiceLedgerFault) -> ReceivedLog {
    do throws(DatabaseError) { return try received(.copying(device.bytes)) } catch {
      throw ServiceLedgerFault(.issuerLedger, cause: error)
    }
  }

  /// Returns at most `limit` entries of a device's log, from the one after `sequence` on. Those that are missing are left out.
  package func receivedEntries(
    of device: DeviceID, after sequence: UInt64, limit: UInt64
  ) throws(ServiceLedgerFault) -> [[UInt8]] {
    let sql: StaticString = """
      SELECT entry FROM audit WHERE device = ? AND sequence > ? AND entry IS NOT NULL ORDER BY sequence LIMIT ?
      """
    do throws(DatabaseError) {
      return try database.all(sql, .copying(device.bytes), .unsigned(sequence), .unsigned(limit)) {
        (row) throws(DatabaseError) in try row.bytes(0)
      }
    } catch { throw ServiceLedgerFault(.issuerLedger, cause: error) }
  }
}

extension ReceivedLog {
  fileprivate init(_ row: borrowing Row) throws(DatabaseError) {
    let number = try row.unsigned(0)
    if try !row.isNull(1), number > 0 {
      let head = try row.bytes(1)
      guard let head = Digest(head.span) else { throw .corrupt }
      through = AuditChain(count: number, head: head)
    }
    count = try row.unsigned(2)
    isForked = try row.unsigned(3) != 0
    cut = try row.unsigned(4)
  }
}
