import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import HoldfastStorage

extension Ledger {
  /// Returns at most `limit` entries of the audit log, from the one after `sequence` on. Entries that cannot be decoded are
  /// left out.
  ///
  /// - Throws: `busy`, `damaged`, `failed`.
  package func auditEntries(after sequence: UInt64 = 0, limit: UInt64) throws(LedgerFault) -> [AuditEntry] {
    try auditRows(after: sequence, limit: limit).compactMap { try? AuditEntry($0.entry.span) }
  }

  /// Checks the audit log from its beginning or its last cut on, and finds the first entry that is missing, changed or out of
  /// place.
  ///
  /// Anyone who can write the file can make a whole new chain, so compare the head with one that was noted elsewhere.
  ///
  /// - Throws: `busy`, `damaged`, `failed`.
  package func verifyAudit() throws(LedgerFault) -> AuditReport {
    let (recorded, base) = try look { (tables) throws(DatabaseError) in
      // Opening the ledger leaves a long log unchecked.
      try tables.database.check()
      let state = try tables.state()
      return (state.audit, state.auditBase)
    }
    var chain = base
    // An entry of the chain records the cut, so moving only the base is detected.
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
  /// Returns the entry, if its row and its contents both have the number `sequence`.
  fileprivate func entry(at sequence: UInt64) -> AuditEntry? {
    guard self.sequence == sequence, let entry = try? AuditEntry(entry.span), entry.sequence == sequence else {
      return nil
    }
    return entry
  }
}

/// Functions that cut the audit log at a recorded head. They work whether or not the device is being served.
extension Ledger {
  /// The most entries that one call cuts off.
  package static let cutLimit: UInt64 = 1_000_000

  /// Moves the entries before number `sequence` into a file at `path`. The log then begins at that entry.
  ///
  /// The file is durable first. Then one transaction moves the beginning of the log and records the head at the cut in the
  /// next entry. A power cut leaves either the whole log, or the file and the rest of the log. The same call again then
  /// completes the cut; if the cut is complete, it does nothing. `realClock`, in Unix seconds, dates the entry.
  ///
  /// - Returns: the chain up to the last entry that was cut off.
  /// - Throws: `ledger`; `beyondEnd` for a number that is not in the log yet; `alreadyCut` if the entries before it were cut
  ///   off and the file does not hold them; `tooMany` for more than ``cutLimit``; `broken` if the entries do not lead to
  ///   their hashes; `file`, with `exists` if another file exists at `path`.
  @discardableResult
  package func cutAudit(
    before sequence: UInt64, to path: String, realClock: UInt64?
  ) throws(AuditCutFault) -> AuditChain {
    let state = try looking { () throws(LedgerFault) in
      try look { (tables) throws(DatabaseError) in try tables.state() }
    }
    guard sequence <= state.audit.count else { throw .beyondEnd(last: state.audit.count) }
    guard sequence > state.auditBase.count + 1 else { return try finishedCut(before: sequence, at: path, state) }
    guard sequence - state.auditBase.count - 1 <= Self.cutLimit else { throw .tooMany }
    let archive = try archive(before: sequence, state)
    try keep(archive, at: path)
    try looking { () throws(LedgerFault) in
      try change { (tables, state) throws(DatabaseError) in
        // Another process may have cut the log here or further on in the meantime.
        guard state.auditBase.count < archive.end.count else { return }
        try tables.cut(behind: archive.end.count, time: state.time(realClock: realClock), state: &state)
        guard state.auditBase == archive.end else { throw .corrupt }
      }
      for _ in 0...Self.cutLimit / LedgerTables.dropLimit {
        guard try change({ (tables, state) throws(DatabaseError) in try tables.dropCutEntries(state) }) else { return }
      }
    }
    return archive.end
  }

  /// Writes all entries that are kept to a file at `path`, and removes none.
  ///
  /// - Returns: the chain up to the last entry.
  /// - Throws: `ledger`; `tooMany` for more than ``cutLimit``; `broken`; `file`, with `exists` if another file exists at `path`.
  package func copyAudit(to path: String) throws(AuditCutFault) -> AuditChain {
    let state = try looking { () throws(LedgerFault) in
      try look { (tables) throws(DatabaseError) in try tables.state() }
    }
    guard state.audit.count - state.auditBase.count <= Self.cutLimit else { throw .tooMany }
    let archive = try archive(before: state.audit.count + 1, state)
    try keep(archive, at: path)
    return archive.end
  }

  /// Returns the entries before number `sequence`, or all that are kept if it is nil, in parts whose files have at most
  /// `byteCount` bytes. A part has at least one entry.
  ///
  /// - Throws: `ledger`, `beyondEnd`, `alreadyCut`, `tooMany`, `broken`.
  package func auditParts(before sequence: UInt64?, byteCount: Int) throws(AuditCutFault) -> [AuditArchive] {
    let state = try looking { () throws(LedgerFault) in
      try look { (tables) throws(DatabaseError) in try tables.state() }
    }
    let sequence = sequence ?? state.audit.count + 1
    guard sequence <= state.audit.count + 1 else { throw .beyondEnd(last: state.audit.count) }
    guard sequence > state.auditBase.count + 1 else { throw .alreadyCut(firstKept: state.auditBase.count + 1) }
    guard sequence - state.auditBase.count - 1 <= Self.cutLimit else { throw .tooMany }
    let whole = try archive(before: sequence, state)
    do throws(CryptographyFailure) { return try whole.parts(byteCount: byteCount) } catch { throw .ledger(.failed) }
  }

  /// Writes a part of the log to a file, and removes its entries if it `isCut`.
  ///
  /// - Throws: as ``cutAudit(before:to:realClock:)`` does.
  package func write(
    _ part: AuditArchive, to path: String, isCut: Bool, realClock: UInt64?
  ) throws(AuditCutFault) {
    if isCut {
      try cutAudit(before: part.end.count + 1, to: path, realClock: realClock)
    } else {
      try keep(part, at: path)
    }
  }

  /// Returns the end of the archive if the file ends at the cut, which shows that the same call was completed before.
  private func finishedCut(
    before sequence: UInt64, at path: String, _ state: LedgerState
  ) throws(AuditCutFault) -> AuditChain {
    guard sequence == state.auditBase.count + 1, sequence > 1, let archive = try? AuditArchive(path: path),
      archive.deviceID == state.deviceID, archive.end == state.auditBase
    else { throw .alreadyCut(firstKept: state.auditBase.count + 1) }
    return archive.end
  }

  private func archive(before sequence: UInt64, _ state: LedgerState) throws(AuditCutFault) -> AuditArchive {
    var entries: [[UInt8]] = []
    var chain = state.auditBase
    var cryptography = OpenSSLCryptography()
    while chain.count + 1 < sequence {
      let (position, limit) = (chain.count, min(512, sequence - chain.count - 1))
      let rows = try looking { () throws(LedgerFault) in
        try look { (tables) throws(DatabaseError) in try tables.auditRows(after: position, limit: limit) }
      }
      guard !rows.isEmpty else { throw .broken(sequence: chain.count + 1) }
      for row in rows {
        do throws(CryptographyFailure) { try chain.advance(over: row.entry.span, using: &cryptography) } catch {
          throw .ledger(.failed)
        }
        guard row.sequence == chain.count, chain.head.bytes.elementsEqual(row.hash.span) else {
          throw .broken(sequence: chain.count)
        }
        entries.append(row.entry)
      }
    }
    return AuditArchive(deviceID: state.deviceID, base: state.auditBase, end: chain, entries: entries)
  }

  /// Writes the archive. A file that exists with the same contents was written by this call before the power failed.
  private func keep(_ archive: AuditArchive, at path: String) throws(AuditCutFault) {
    let bytes = archive.encoded()
    do throws(FileError) {
      try Files.writeFileAtomically(bytes, at: path, overwrite: false)
    } catch {
      guard error.kind == .exists, let known = try? Files.readFile(at: path, limit: AuditArchive.maximumByteCount),
        known == bytes
      else { throw .file(error) }
    }
  }

  private func looking<Result>(_ body: () throws(LedgerFault) -> Result) throws(AuditCutFault) -> Result {
    do throws(LedgerFault) { return try body() } catch { throw .ledger(error) }
  }
}

/// The reason that an audit log was not cut.
package enum AuditCutFault: Error, Equatable {
  /// The ledger could not be read or written.
  case ledger(LedgerFault)
  /// The log has no entry with that number; its last entry is `last`.
  case beyondEnd(last: UInt64)
  /// The entries before that number were cut off earlier.
  case alreadyCut(firstKept: UInt64)
  /// The cut has more entries than one call cuts off.
  case tooMany
  /// The log is broken at this entry.
  case broken(sequence: UInt64)
  /// The file cannot be written, or another file exists at the path.
  case file(FileError)
}
