import HoldfastCore
import HoldfastFirmware

/// The newest entries of the audit log: a device drops older ones, and keeps the hash that they led to.
extension FirmwareImage: OwnerLedger {
  public func auditEntries(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditEntry] {
    try look { (store, _) throws(LedgerFault) in
      var entries: [AuditEntry] = []
      try store.attempt { (store) throws(StoreFailure) in
        try store.forEachAuditEntry { (entry, chain) in
          if let entry, chain.count > sequence, entries.count < limit { entries.append(entry) }
        }
      }
      return entries
    }
  }

  /// Whoever can write the file can make a whole new chain: compare the head with one that was noted elsewhere.
  public func verifyAudit() throws(LedgerFault) -> AuditReport {
    try look { (store, _) throws(LedgerFault) in
      var report = AuditReport(recorded: store.audit)
      var firstKept: UInt64?
      try store.attempt { (store) throws(StoreFailure) in
        try store.forEachAuditEntry { (entry, chain) in
          firstKept = firstKept ?? chain.count
          if entry?.sequence != chain.count { report.firstBroken = report.firstBroken ?? chain.count }
        }
      }
      report.firstKept = firstKept ?? 1
      return report
    }
  }
}
