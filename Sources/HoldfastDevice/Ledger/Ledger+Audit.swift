import HoldfastCore
import HoldfastOpenSSL
import HoldfastStorage

extension Ledger {
  /// At most `limit` entries of the audit log, from the one after `sequence` on; those that cannot be decoded are left out.
  ///
  /// Throws `busy`, `failed`.
  public func auditEntries(after sequence: UInt64 = 0, limit: UInt64) throws(LedgerFault) -> [AuditEntry] {
    try auditRows(after: sequence, limit: limit).compactMap { try? AuditEntry($0.entry.span) }
  }

  /// Walks the audit log from where it was cut on, and finds the first entry that is missing, changed or out of place.
  ///
  /// Whoever can write the file can make a whole new chain: compare the head with one that was noted elsewhere.
  /// Throws `busy`, `failed`.
  public func verifyAudit() throws(LedgerFault) -> AuditReport {
    let (recorded, base) = try look { (tables) throws(DatabaseError) in
      // Opening leaves a long log out.
      try tables.database.check()
      let state = try tables.state()
      return (state.audit, state.auditBase)
    }
    var chain = base
    // The cut stands in an entry of the chain: whoever only moves the base is found out.
    var isBaseNamed = base.count == 0
    var cryptography = OpenSSLCryptography()
    while chain.count < recorded.count {
      let rows = try auditRows(after: chain.count, limit: min(512, recorded.count - chain.count))
      guard !rows.isEmpty else { break }
      for row in rows {
        let sequence = chain.count + 1
        do throws(CryptographyFailure) { try chain.advance(over: row.entry.span, using: &cryptography) } catch {
          throw .failed
        }
        guard let entry = row.entry(at: sequence), chain.head.bytes.elementsEqual(row.hash.span) else {
          return AuditReport(recorded: recorded, firstKept: base.count + 1, firstBroken: sequence)
        }
        if entry.event == .logCut(base) { isBaseNamed = true }
      }
    }
    var report = AuditReport(recorded: recorded, firstKept: base.count + 1)
    if chain.count < recorded.count {
      report.firstBroken = chain.count + 1
    } else if chain != recorded {
      report.firstBroken = max(chain.count, 1)
    } else if !isBaseNamed {
      report.firstBroken = base.count + 1
    }
    return report
  }

  private func auditRows(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditRow] {
    try look { (tables) throws(DatabaseError) in
      try tables.auditRows(after: max(sequence, tables.state().auditBase.count), limit: limit)
    }
  }
}

extension AuditRow {
  /// The entry, where it stands at `sequence` and says so itself.
  fileprivate func entry(at sequence: UInt64) -> AuditEntry? {
    guard self.sequence == sequence, let entry = try? AuditEntry(entry.span), entry.sequence == sequence else {
      return nil
    }
    return entry
  }
}
