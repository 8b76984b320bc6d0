import HoldfastCore
import HoldfastDatabase
import HoldfastIssuer
import HoldfastStorage

/// The state of a device's audit log at the service.
struct AuditLogState: Equatable {
  /// The last entry before which none is missing, except those that the device no longer had.
  var through: UInt64
  /// The number of entries that the device no longer keeps.
  var cut: UInt64
  /// The number of entries that the device had when it made the newest page.
  var count: UInt64
  /// The last entry of the newest receipt.
  var acknowledged: UInt64
  /// Whether a page contradicted what was known.
  var isForked: Bool

  /// The number of the first entry that the service lacks and the device may have; nil if there is none, as far as is known.
  var missing: UInt64? {
    let known = max(through, cut)
    return known < count ? known + 1 : nil
  }
}

/// The storing of pieces of audit logs, in any order. The caller has locked the device's record.
extension FleetSession {
  /// Returns the known hashes after the entries of a piece and before its first one. That before the first entry of a log is always known.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - first: The number of the entry before the piece.
  ///   - last: The number of its last entry.
  func auditHeads(
    of device: DeviceID, from first: UInt64, through last: UInt64
  ) throws(FleetFault) -> [UInt64: [UInt8]] {
    var heads: [UInt64: [UInt8]] = first == 0 ? [0: Self.array(AuditChain().head.bytes)] : [:]
    let found = try rows(
      """
      SELECT sequence, head FROM audits WHERE device = $1 AND sequence >= $2 AND sequence <= $3
      UNION ALL SELECT sequence, head FROM audit_heads WHERE device = $1 AND sequence >= $2 AND sequence <= $3
      """, .copying(device.bytes), .unsigned(first), .unsigned(last))
    for row in found {
      let (sequence, head) = try decoding { () throws(SQLFault) in (try row.unsigned(0), try row.bytes(1)) }
      heads[sequence] = head
    }
    return heads
  }

  /// Returns whether a piece of a log agrees with what is known: equal numbers have equal hashes.
  func agrees(
    _ links: [AuditLink], after base: AuditChain, with known: [UInt64: [UInt8]]
  ) -> Bool {
    let chains = [base] + links.map { AuditChain(count: $0.entry.sequence, head: $0.head) }
    return chains.allSatisfy { chain in known[chain.count].map { $0 == Self.array(chain.head.bytes) } ?? true }
  }

  /// Stores the entries that are not known yet.
  ///
  /// - Parameters:
  ///   - links: The entries, which agree with what is known.
  ///   - base: The chain before the first entry that was brought.
  ///   - device: The device.
  ///   - known: The known hashes.
  /// - Returns: Those that are new.
  func storeNew(
    _ links: [AuditLink], after base: AuditChain, of device: DeviceID, _ known: [UInt64: [UInt8]]
  ) throws(FleetFault) -> [AuditLink] {
    var new: [AuditLink] = []
    let last = links.last?.entry.sequence ?? base.count
    let numbers = try storedNumbers(of: device, from: base.count, through: last)
    for link in links where !numbers.contains(link.entry.sequence) {
      try store(link, of: device)
      new.append(link)
    }
    if known[base.count] == nil { try note(base, of: device) }
    return new
  }

  /// Remembers the hash after an entry whose content may not be known.
  func note(_ chain: AuditChain, of device: DeviceID) throws(FleetFault) {
    try run(
      """
      INSERT INTO audit_heads (device, sequence, head) VALUES ($1, $2, $3) ON CONFLICT (device, sequence) DO NOTHING
      """, .copying(device.bytes), .unsigned(chain.count), .copying(chain.head.bytes))
  }

  private func storedNumbers(
    of device: DeviceID, from first: UInt64, through last: UInt64
  ) throws(FleetFault) -> Set<UInt64> {
    var numbers: Set<UInt64> = []
    for row in try rows(
      "SELECT sequence FROM audits WHERE device = $1 AND sequence > $2 AND sequence <= $3", .copying(device.bytes),
      .unsigned(first), .unsigned(last))
    {
      numbers.insert(try decoding { () throws(SQLFault) in try row.unsigned(0) })
    }
    return numbers
  }

  /// Returns the last entry that follows another one without a gap.
  func auditEnd(of device: DeviceID, from start: UInt64) throws(FleetFault) -> UInt64 {
    let key = Value.copying(device.bytes)
    guard
      try row("SELECT 1 FROM audits WHERE device = $1 AND sequence = $2", key, .unsigned(start + 1)) != nil,
      let row = try row(
        """
        SELECT a.sequence FROM audits a WHERE a.device = $1 AND a.sequence > $2 AND NOT EXISTS (
          SELECT 1 FROM audits b WHERE b.device = a.device AND b.sequence = a.sequence + 1)
        ORDER BY a.sequence LIMIT 1
        """, key, .unsigned(start))
    else { return start }
    return try decoding { () throws(SQLFault) in try row.unsigned(0) }
  }

  /// Returns the state of a device's log; nil if no page has come.
  func auditLog(of device: DeviceID) throws(FleetFault) -> AuditLogState? {
    guard
      let row = try row(
        "SELECT through, cut, count, acknowledged, forked FROM audit_logs WHERE device = $1", .copying(device.bytes))
    else { return nil }
    return try decoding { () throws(SQLFault) in
      AuditLogState(
        through: try row.unsigned(0), cut: try row.unsigned(1), count: try row.unsigned(2),
        acknowledged: try row.unsigned(3), isForked: try !row.isNull(4))
    }
  }

  /// Moves the ends of the entries before which none is missing, after entries were stored.
  func advanceAuditLog(of device: DeviceID) throws(FleetFault) {
    let key = Value.copying(device.bytes)
    if let log = try auditLog(of: device) {
      let start = max(log.through, log.cut)
      // The log may begin behind entries that the device no longer keeps, but only where its hash is known.
      if try auditHeads(of: device, from: start, through: start)[start] != nil {
        let end = try auditEnd(of: device, from: start)
        try run("UPDATE audit_logs SET through = $2 WHERE device = $1", key, .unsigned(end))
        // The entries themselves have these hashes.
        try run(
          """
          DELETE FROM audit_heads WHERE device = $1 AND sequence <= $2 AND EXISTS (
            SELECT 1 FROM audits a WHERE a.device = audit_heads.device AND a.sequence = audit_heads.sequence)
          """, key, .unsigned(end))
      }
    }
    var count: UInt64 = 0
    if let row = try row("SELECT count FROM audit_chains WHERE device = $1", key) {
      count = try decoding { () throws(SQLFault) in try row.unsigned(0) }
    }
    let known = try auditEnd(of: device, from: count)
    guard known > count else { return }
    try run(
      """
      INSERT INTO audit_chains (device, count, received) VALUES ($1, $2, $3)
      ON CONFLICT (device) DO UPDATE SET count = excluded.count, received = excluded.received
      """, key, .unsigned(known), .unsigned(now))
  }

  static func array(_ bytes: Span<UInt8>) -> [UInt8] {
    var array: [UInt8] = []
    array.append(bytes)
    return array
  }
}
