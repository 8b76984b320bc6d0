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

  /// Walks the whole audit log and finds the first entry that is missing, changed or out of place.
  ///
  /// Whoever can write the file can make a whole new chain: compare the head with one that was noted elsewhere.
  /// Throws `busy`, `failed`.
  public func verifyAudit() throws(LedgerFault) -> AuditReport {
    let recorded = try summary().audit
    var chain = AuditChain()
    var cryptography = OpenSSLCryptography()
    while chain.count < recorded.count {
      let rows = try auditRows(after: chain.count, limit: min(512, recorded.count - chain.count))
      guard !rows.isEmpty else { break }
      for row in rows {
        let sequence = chain.count + 1
        do throws(CryptographyFailure) { try chain.advance(over: row.entry.span, using: &cryptography) } catch {
          throw .failed
        }
        guard row.isEntry(sequence), chain.head.bytes.elementsEqual(row.hash.span) else {
          return AuditReport(recorded: recorded, firstBroken: sequence)
        }
      }
    }
    if chain.count < recorded.count { return AuditReport(recorded: recorded, firstBroken: chain.count + 1) }
    return AuditReport(recorded: recorded, firstBroken: chain == recorded ? nil : max(chain.count, 1))
  }

  private func auditRows(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditRow] {
    try look { (tables) throws(DatabaseError) in try tables.auditRows(after: sequence, limit: limit) }
  }
}

extension AuditRow {
  /// Whether it stands at `sequence` and says so itself.
  fileprivate func isEntry(_ sequence: UInt64) -> Bool {
    guard self.sequence == sequence else { return false }
    do throws(EncodingFault) { return try AuditEntry(entry.span).sequence == sequence } catch { return false }
  }
}
