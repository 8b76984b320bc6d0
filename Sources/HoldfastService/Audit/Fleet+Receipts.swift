import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

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
      guard try self.receiptCondition.state(in: session).isSigning else { return nil }
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
