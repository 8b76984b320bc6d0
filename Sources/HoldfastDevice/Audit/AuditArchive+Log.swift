import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

extension AuditArchive: AuditLog {
  /// Returns the chain after the last entry, as the last line records it.
  package func auditHead() -> AuditChain { end }

  /// Returns at most `limit` entries, from the one after `sequence` on. Entries that cannot be decoded are left out.
  package func auditEntries(after sequence: UInt64, limit: UInt64) -> [AuditEntry] {
    let skipped = sequence > base.count ? Int(clamping: sequence - base.count) : 0
    return entries.dropFirst(skipped).prefix(Int(clamping: limit)).compactMap { try? AuditEntry($0.span) }
  }

  /// Checks that the entries lead from the first head to the last.
  ///
  /// - Throws: `failed` if libcrypto fails.
  package func verifyAudit() throws(LedgerFault) -> AuditReport {
    var report = AuditReport(recorded: end, firstKept: base.count + 1)
    var chain = base
    var cryptography = OpenSSLCryptography()
    for bytes in entries {
      do throws(CryptographyFailure) { try chain.advance(over: bytes.span, using: &cryptography) } catch {
        throw .failed
      }
      guard let entry = try? AuditEntry(bytes.span), entry.sequence == chain.count else {
        report.firstBroken = chain.count
        return report
      }
    }
    // The hash chain shows that something was changed, but not which entry.
    if chain != end { report.firstBroken = base.count + 1 }
    return report
  }
}

extension AuditArchive {
  /// Divides the entries into parts whose files have at most `byteCount` bytes. A part has at least one entry.
  func parts(byteCount: Int) throws(CryptographyFailure) -> [AuditArchive] {
    // The first and the last line, with numbers of at most 16 digits.
    let frameByteCount = 320
    var parts: [AuditArchive] = []
    var cryptography = OpenSSLCryptography()
    var (first, chain, kept, length) = (base, base, [[UInt8]](), frameByteCount)
    func part() -> AuditArchive { AuditArchive(deviceID: deviceID, base: first, end: chain, entries: kept) }
    for entry in entries {
      let lineByteCount = 13 + 2 * entry.count
      if !kept.isEmpty, length + lineByteCount > byteCount {
        parts.append(part())
        (first, kept, length) = (chain, [], frameByteCount)
      }
      try chain.advance(over: entry.span, using: &cryptography)
      kept.append(entry)
      length += lineByteCount
    }
    if !kept.isEmpty { parts.append(part()) }
    return parts
  }

  /// The longest file that is read, in bytes.
  static var maximumByteCount: Int { 1 << 30 }

  /// Reads a file of at most 1 GiB. It does not check that the entries lead from one head to the other; see
  /// ``verifyAudit()``.
  package init(path: String) throws(AuditFileFault) {
    let bytes: [UInt8]
    do throws(FileError) { bytes = try Files.readFile(at: path, limit: Self.maximumByteCount) } catch {
      throw .file(error)
    }
    do throws(AuditArchiveFault) { try self.init(bytes) } catch { throw .archive(error) }
  }
}

/// The reason that a file of audit entries could not be read.
package enum AuditFileFault: Error, Equatable {
  /// The file cannot be read.
  case file(FileError)
  /// Its contents are no audit entries.
  case archive(AuditArchiveFault)
}

/// The result of checking an audit log.
package struct AuditReport: Sendable, Equatable {
  /// The last entry's number and hash, as the ledger records them.
  package var recorded: AuditChain
  /// The sequence number of the first entry that is kept.
  package var firstKept: UInt64 = 1
  /// The sequence number of the first entry that is missing, changed or out of place; nil if the whole chain is intact.
  package var firstBroken: UInt64?

  package init(recorded: AuditChain, firstKept: UInt64 = 1, firstBroken: UInt64? = nil) {
    (self.recorded, self.firstKept, self.firstBroken) = (recorded, firstKept, firstBroken)
  }
}
