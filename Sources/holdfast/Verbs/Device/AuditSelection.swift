import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastText

/// Which entries of an audit log are asked for. All conditions hold at once.
struct AuditSelectionOptions: ParsableArguments {
  @Option(help: "Only the entries after this sequence number.")
  var after: String?

  @Option(help: "Only the entries from this time on, such as 2026-11-22T18:00:00Z, or in Unix seconds.")
  var since: String?

  @Option(help: "Only the entries that name this user.")
  var user: String?

  @Option(help: "Only rounds that ended with this status, such as accepted, and totals that count it.")
  var status: String?

  @Option(help: "Only the last entries of those.")
  var last: Int?

  /// Throws `usage` for what is no number, time, name or status.
  func selection() throws(Failure) -> AuditSelection {
    var selection = AuditSelection()
    if let last {
      guard last >= 0 else { throw Failure(.usage, "--last is not negative") }
      selection.last = last
    }
    if let after {
      guard let sequence = decimal(after), sequence <= maximumInteger else {
        throw Failure(
          .usage, "--after is a sequence number", hint: "device audit prints it at the beginning of each line")
      }
      selection.after = sequence
    }
    if let since { selection.since = try Timestamp(argument: since, of: "--since").unixSeconds }
    if let user { selection.user = try BoundedText<32>(userArgument: user).description }
    if let status {
      guard let known = Status.allCases.first(where: { $0.name == status }) else {
        throw Failure(
          .usage, "--status is none of the statuses",
          hint: "one of: \(Status.allCases.map(\.name).joined(separator: ", "))")
      }
      selection.status = known
    }
    return selection
  }

  var isEmpty: Bool { after == nil && since == nil && user == nil && status == nil && last == nil }
}

/// Conditions on the entries of an audit log.
struct AuditSelection {
  var after: UInt64 = 0
  /// Unix seconds. Times may go back where the owner has moved the clock: each entry is looked at.
  var since: UInt64?
  var user: String?
  var status: Status?
  /// How many of the last entries are wanted; nil for all.
  var last: Int?

  /// Walks along the entries of a log of `count`, from the first that may be wanted, and gives those that are, in order.
  func forEach(
    in ledger: some AuditLog, count: UInt64, _ body: (AuditEntry) -> Void
  ) throws(Failure) {
    let isSequenceEnough = since == nil && user == nil && status == nil
    var position = after
    if let last, isSequenceEnough, count > UInt64(last) { position = max(position, count - UInt64(last)) }
    // With other conditions, which entries are the last is known at the end.
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

  /// Whether an entry that was read is wanted. What it shows is what counts, so that no kind of entry is forgotten here.
  func contains(_ entry: AuditEntry) -> Bool {
    if let since, entry.time < since { return false }
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
      // Totals name what they count.
      case .number: name == status.name
      default: false
      }
    }
  }
}
