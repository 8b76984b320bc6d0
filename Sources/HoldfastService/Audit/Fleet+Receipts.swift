import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// The condition under which the service signs receipts: a device drops what they acknowledge.
struct ReceiptCondition: Sendable {
  private let isPostgreSQL: Bool
  private let isWaived: Bool

  /// Creates a condition.
  ///
  /// - Parameters:
  ///   - location: The database.
  ///   - isWaived: Whether receipts need no standby.
  init(_ location: DatabaseLocation, isWaived: Bool) {
    if case .postgreSQL = location { isPostgreSQL = true } else { isPostgreSQL = false }
    self.isWaived = isWaived
  }

  /// Returns whether commits of this session wait for a standby, which is there. A commit sets `synchronous_commit` at least to `on`.
  ///
  /// A role that may not see the state of standbys finds none.
  func isMet(in session: FleetSession) throws(FleetFault) -> Bool {
    guard !isWaived else { return true }
    guard isPostgreSQL else { return false }
    return try session.row(
      """
      SELECT 1 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')
        AND current_setting('synchronous_standby_names') <> '' LIMIT 1
      """) != nil
  }
}

extension Fleet {
  /// Signs a receipt for entries whose commit has returned; nil for none.
  ///
  /// The condition was met before the commit, and must be met after it, so that the commit cannot have gone on without the standby.
  func receipt(
    for stored: StoredPages, of device: DeviceID, by home: FleetKeys.Issuer
  ) throws(FleetFault) -> [UInt8]? {
    let log = stored.log
    guard stored.isSafe, !log.isForked, log.through > 0 else { return nil }
    let found = try read { (session) throws(FleetFault) -> [UInt8]? in
      guard try self.receiptCondition.isMet(in: session) else { return nil }
      return try session.auditHeads(of: device, from: log.through, through: log.through)[log.through]
    }
    guard let found, let head = Digest(found.span) else { return nil }
    let receipt: [UInt8]
    do throws(CryptographyFailure) {
      var key = home.key
      receipt = try AuditHome(of: key.publicPoint)
        .receipt(for: AuditChain(count: log.through, head: head), of: device, key: &key)
    } catch { throw .cryptography }
    if log.through > log.acknowledged {
      try transaction { (session) throws(FleetFault) in try session.acknowledge(log.through, of: device) }
    }
    return receipt
  }
}

extension FleetSession {
  fileprivate func acknowledge(_ number: UInt64, of device: DeviceID) throws(FleetFault) {
    let changed = try run(
      "UPDATE audit_logs SET acknowledged = $2 WHERE device = $1 AND acknowledged < $2", .copying(device.bytes),
      .unsigned(number))
    if changed > 0 { try log("audit.receipt", hexadecimal(device), by: .service, "entry \(number)") }
  }
}
