import ArgumentParser
import Glibc
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

/// The options that select entries of an audit log. An entry must meet all conditions.
struct AuditSelectionOptions: ParsableArguments {
  @Option(help: "Show only entries after this sequence number.")
  var after: String?

  @Option(help: "Show only entries from this time on, such as 2026-11-22T18:00:00Z, or in Unix seconds.")
  var since: String?

  @Option(help: "Show only entries from before this time.")
  var until: String?

  @Option(help: "Show only entries of this level or a higher one: information, notice, warning or error.")
  var level: String?

  @Option(help: "Show only entries that name this user.")
  var user: String?

  @Option(help: "Show only rounds that ended with this status, such as accepted, and totals that count it.")
  var status: String?

  @Option(help: "Show only the last entries of those selected, at most this number.")
  var last: Int?

  /// Returns the selection.
  ///
  /// - Throws: `usage` for a malformed number, time, name or status.
  func selection() throws(Failure) -> AuditSelection {
    var selection = AuditSelection()
    if let last {
      guard last >= 0 else { throw Failure(.usage, "--last must not be negative") }
      selection.last = last
    }
    if let after {
      guard let sequence = decimal(after), sequence <= maximumInteger else {
        throw Failure(
          .usage, "--after must be a sequence number", hint: "device audit prints it at the beginning of each line")
      }
      selection.after = sequence
    }
    if let since { selection.since = try Timestamp(argument: since, of: "--since").unixSeconds }
    if let until { selection.until = try Timestamp(argument: until, of: "--until").unixSeconds }
    if let level {
      guard let known = AuditLevel.allCases.first(where: { haveSameBytes($0.name, level) }) else {
        throw Failure(
          .usage, "--level must be the name of a level",
          hint: "the names are \(AuditLevel.allCases.map(\.name).joined(separator: ", "))")
      }
      selection.level = known
    }
    if let user { selection.user = try BoundedText<32>(userArgument: user).description }
    if let status {
      guard let known = Status.allCases.first(where: { $0.name == status }) else {
        throw Failure(
          .usage, "--status must be the name of a status",
          hint: "the names are \(Status.allCases.map(\.name).joined(separator: ", "))")
      }
      selection.status = known
    }
    return selection
  }

  var isEmpty: Bool {
    after == nil && since == nil && until == nil && level == nil && user == nil && status == nil && last == nil
  }
}

/// The conditions on the entries of an audit log.
struct AuditSelection {
  var after: UInt64 = 0
  /// The earliest time, in Unix seconds. Every entry is checked, because times may go back if the owner has moved the
  /// clock.
  var since: UInt64?
  /// The time before which entries are selected, in Unix seconds.
  var until: UInt64?
  /// The lowest level.
  var level = AuditLevel.information
  var user: String?
  var status: Status?
  /// The number of last entries to select; nil for all.
  var last: Int?

  /// Passes the selected entries of a log with `count` entries to `body`, in order.
  func forEach(
    in ledger: any AuditLog, count: UInt64, _ body: (AuditEntry) -> Void
  ) throws(Failure) {
    let isSequenceEnough =
      since == nil && until == nil && level == .information && user == nil && status == nil
    var position = after
    if let last, isSequenceEnough, count > UInt64(last) { position = max(position, count - UInt64(last)) }
    // With other conditions, the last matching entries are known only at the end.
    var kept: [AuditEntry] = []
    let keptCount = isSequenceEnough ? nil : last
    while position < count {
      let entries = try recording { () throws(LedgerFault) in try ledger.auditEntries(after: position, limit: 256) }
      guard let end = entries.last?.sequence, end > position else { break }
      position = end
      for entry in entries where contains(entry) {
        guard let keptCount else {
          body(entry)
          continue
        }
        kept.append(entry)
        if kept.count >= 2 * keptCount + 256 { kept.removeFirst(kept.count - keptCount) }
      }
    }
    for entry in kept.suffix(keptCount ?? 0) { body(entry) }
  }

  /// Returns whether an entry is selected. The check uses the displayed details, so that it covers every kind of entry.
  func contains(_ entry: AuditEntry) -> Bool {
    if let since, entry.time < since { return false }
    if let until, entry.time >= until { return false }
    if entry.event.level < level { return false }
    if user == nil && status == nil { return true }
    let details = entry.event.details
    if let user {
      let isNamed = details.contains { name, value in
        if name == "user", case .text(let text) = value { text.utf8.elementsEqual(user.utf8) } else { false }
      }
      guard isNamed else { return false }
    }
    guard let status else { return true }
    return details.contains { name, value in
      switch value {
      case .word(let word): name == "status" && word == status.name
      // Totals use the status as the name of the value.
      case .number: name == status.name
      default: false
      }
    }
  }
}

/// The options for cutting the audit log of a folder and for reading the entries that were cut off.
struct AuditCutOptions: ParsableArguments {
  @Option(
    help: """
      Remove the entries before this one, which becomes the first, or before a time, such as 2026-11-08T00:00:00Z; --to names \
      the file for them.
      """)
  var cutBefore: String?

  @Option(
    help: """
      The file for the removed entries; without --cut-before, for a copy of the log. It must not exist. A folder gets a file \
      named after the numbers of the entries, such as audit-1-999.jsonl.
      """,
    completion: .file())
  var to: String?

  @Option(help: "Instead of a device: print or check the entries that were moved to this file.", completion: .file())
  var file: String?

  @Option(
    help: """
      The most bytes of one file, 4096 or more: --to then names where several files with whole entries go.
      """)
  var bytes: Int?

  func check(isReading: Bool) throws(Failure) {
    if let bytes {
      guard bytes >= Self.leastByteCount else {
        throw Failure(.usage, "--bytes must be \(Self.leastByteCount) or more")
      }
      guard let to, isFolder(to) else { throw Failure(.usage, "--bytes requires --to with a folder that exists") }
    }
    guard cutBefore == nil || to != nil else {
      throw Failure(
        .usage, "--cut-before requires --to", hint: "for example --cut-before 1000 --to audit-1-999.jsonl")
    }
    guard to != nil else { return }
    guard file == nil, !isReading else {
      throw Failure(
        .usage, "--to accepts only --dir and --cut-before", hint: "print or check the log with a second command")
    }
    guard to != "-" else {
      throw Failure(
        .usage, "--to cannot be standard output: the entries must first be on the disk", hint: "use the name of a file")
    }
    _ = try place()
  }

  private static let leastByteCount = 4096

  /// The beginning of the log after a cut.
  private enum Place {
    case sequence(UInt64)
    /// Unix seconds.
    case time(UInt64)
  }

  /// Returns where the log is to begin; nil if nothing is to be cut.
  private func place() throws(Failure) -> Place? {
    guard let cutBefore else { return nil }
    guard cutBefore.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      return .time(try Timestamp(argument: cutBefore, of: "--cut-before").unixSeconds)
    }
    guard let sequence = decimal(cutBefore), sequence <= maximumInteger else {
      throw Failure(.usage, "--cut-before must be a sequence number or a time")
    }
    guard sequence != 0 else { throw Failure(.usage, "the first entry has the number 1") }
    return .sequence(sequence)
  }

  /// Opens the archive that replaces a device; returns nil if a device is to be opened.
  func archive(besides device: DeviceOptions) throws(Failure) -> AuditArchive? {
    guard let file else { return nil }
    guard device.dir == nil, device.firmware == nil else {
      throw Failure(.usage, "--file replaces the device", hint: "leave out --dir and --firmware")
    }
    do throws(AuditFileFault) { return try AuditArchive(path: file) } catch {
      switch error {
      case .file(let error): throw Failure(error, hint: "use a file that --cut-before wrote")
      case .archive(.malformed):
        throw Failure(
          .malformed, "\(file) is not a file of audit entries, or only the beginning of one",
          hint: "use a file that --cut-before wrote")
      case .archive(.newerVersion):
        throw Failure(.malformed, "\(file) was written by a later version", hint: "use that version")
      }
    }
  }

  /// Cuts or copies the log if the options request it. Returns whether they do.
  func cut(_ owned: some OwnedDevice, _ output: OutputOptions) throws(Failure) -> Bool {
    guard let to else { return false }
    guard let ledger = try owned.ledger() as? Ledger else {
      throw Failure(
        .usage, "--to does not work with --firmware: a board drops its oldest entries by itself",
        hint: "it is for --dir")
    }
    let first = try recording { () throws(LedgerFault) in try ledger.auditEntries(limit: 1).first?.sequence ?? 1 }
    var begin: UInt64?
    if let place = try place() {
      begin = try sequence(of: place, in: ledger)
      if case .time = place, begin == first {
        report(nothingBefore: first, output)
        return true
      }
    }
    let head = try recording { () throws(LedgerFault) in try ledger.auditHead() }
    if let bytes {
      try writeParts(of: ledger, before: begin, to: to, bytes, output)
      return true
    }
    let file = isFolder(to) ? "\(to)/audit-\(first)-\(begin.map { $0 - 1 } ?? head.count).jsonl" : to
    let end: AuditChain
    do throws(AuditCutFault) {
      if let begin {
        end = try ledger.cutAudit(before: begin, to: file, realClock: SystemClock().unixSeconds())
      } else {
        end = try ledger.copyAudit(to: file)
      }
    } catch { throw Failure(error, cutBefore: begin ?? 0, file: file) }
    if output.json {
      Console.result(
        .object([
          ("through", .integer(end.count)), ("head", .string(hexadecimal(end.head))), ("file", .string(file)),
        ]))
    } else {
      Console.result("entries up to \(end.count) are in \(file), head \(hexadecimal(end.head))")
    }
    return true
  }

  /// Writes several files, and cuts the log behind each one if entries are to be removed.
  private func writeParts(
    of ledger: Ledger, before begin: UInt64?, to folder: String, _ byteCount: Int, _ output: OutputOptions
  ) throws(Failure) {
    var (files, end) = ([JSONValue](), AuditChain())
    do throws(AuditCutFault) {
      for part in try ledger.auditParts(before: begin, byteCount: byteCount) {
        let file = "\(folder)/audit-\(part.base.count + 1)-\(part.end.count).jsonl"
        try ledger.write(part, to: file, isCut: begin != nil, realClock: SystemClock().unixSeconds())
        files.append(.string(file))
        end = part.end
        if !output.json { Console.result("entries up to \(end.count) are in \(file), head \(hexadecimal(end.head))") }
      }
    } catch { throw Failure(error, cutBefore: begin ?? 0, file: folder) }
    if output.json {
      Console.result(
        .object([
          ("through", .integer(end.count)), ("head", .string(hexadecimal(end.head))), ("files", .array(files)),
        ]))
    }
  }

  /// Returns the number of the first entry that stays. The last entry stays in any case.
  private func sequence(of place: Place, in ledger: Ledger) throws(Failure) -> UInt64 {
    let earliest: UInt64
    switch place {
    case .sequence(let sequence): return sequence
    case .time(let seconds): earliest = seconds
    }
    var last: UInt64 = 0
    while true {
      let entries = try recording { () throws(LedgerFault) in try ledger.auditEntries(after: last, limit: 256) }
      if let found = entries.first(where: { $0.time >= earliest }) { return found.sequence }
      guard let end = entries.last?.sequence, end > last else { return max(last, 1) }
      last = end
    }
  }

  private func isFolder(_ path: String) -> Bool {
    var status = stat()
    return unsafe stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private func report(nothingBefore first: UInt64, _ output: OutputOptions) {
    if output.json {
      Console.result(.object([("through", .integer(first - 1)), ("head", .null), ("file", .null)]))
    } else {
      Console.result("no entry is from before that time; the first one is \(first)")
    }
  }
}

extension Failure {
  fileprivate init(_ fault: AuditCutFault, cutBefore: UInt64, file: String) {
    switch fault {
    case .ledger(let fault): self.init(fault)
    case .beyondEnd(let last):
      self.init(
        .malformed, "there is no entry \(cutBefore): the last one is \(last)",
        hint: "the given entry becomes the first one")
    case .alreadyCut(let firstKept):
      self.init(
        .malformed, "there is nothing to cut: the first entry in the log is \(firstKept)",
        hint: "use a number above \(firstKept)")
    case .tooMany:
      self.init(
        .malformed, "at most \(Ledger.cutLimit) entries can be cut at once",
        hint: "cut in steps, each into a new file")
    case .broken(let sequence):
      self.init(
        .malformed, "the audit log is broken from entry \(sequence) on, and was not cut",
        hint: "the file was tampered with, or the disk is faulty")
    case .file(let error) where error.kind == .exists:
      self.init(.malformed, "\(file) already exists; nothing was overwritten", hint: "use another name")
    case .file(let error): self.init(error, hint: "use a file in a writable folder")
    }
  }
}
