import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats

struct DeviceAudit: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "audit", abstract: "Print the device's audit log, check its chain, or cut it.",
    examples: [
      "holdfast device audit --dir lock --last 20",
      "holdfast device audit --dir lock --after 1200 --json",
      "holdfast device audit --dir lock --since 2026-11-22T18:00:00Z \\\n--user alice --status otpRejected",
      "holdfast device audit --dir lock --level warning \\\n--since 2026-11-22T00:00:00Z --until 2026-11-23T00:00:00Z",
      "holdfast device audit --dir lock --verify",
      "holdfast device audit --dir lock --cut-before 100000 --to audit-1.jsonl",
      "holdfast device audit --dir lock --to archive \\\n--cut-before 2026-11-08T00:00:00Z",
      "holdfast device audit --dir lock --to archive --bytes 1000000",
      "holdfast device audit --file audit-1.jsonl --verify",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Check that no entry is missing, changed or out of place.")
  var verify = false

  @OptionGroup var choice: AuditSelectionOptions

  @OptionGroup var cutting: AuditCutOptions

  func check() throws(Failure) {
    _ = try choice.selection()
    guard !verify || choice.isEmpty else {
      throw Failure(
        .usage, "--verify checks the whole log", hint: "leave out the options that select entries")
    }
    try cutting.check(isReading: verify || !choice.isEmpty)
  }

  mutating func perform() throws(Failure) {
    try check()
    guard let archive = try cutting.archive(besides: device) else { return try performAtPlace() }
    try show(archive)
  }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    if try cutting.cut(owned, output) { return }
    try show(try owned.ledger())
  }

  private func show(_ ledger: any AuditLog) throws(Failure) {
    if verify { try check(ledger) } else { try print(ledger) }
  }

  private func check(_ ledger: any AuditLog) throws(Failure) {
    let report = try recording { () throws(LedgerFault) in try ledger.verifyAudit() }
    if output.json {
      var members: [(String, JSONValue)] = [
        ("entries", .integer(report.recorded.count)), ("head", .string(hexadecimal(report.recorded.head))),
        ("whole", .bool(report.firstBroken == nil)),
      ]
      if let broken = report.firstBroken { members.append(("first_broken", .integer(broken))) }
      Console.result(.object(members))
    }
    if let broken = report.firstBroken {
      throw Failure(
        .malformed, "the audit log is broken from entry \(broken) on",
        hint: "the file was tampered with, or the disk is faulty"
      ).afterResult()
    }
    if !output.json {
      Console.result("\(report.keptText), whole, head \(hexadecimal(report.recorded.head))")
    }
  }

  private func print(_ ledger: any AuditLog) throws(Failure) {
    let head = try recording { () throws(LedgerFault) in try ledger.auditHead() }
    var objects: [JSONValue] = []
    try choice.selection().forEach(in: ledger, count: head.count) { entry in
      if output.json { objects.append(entry.json) } else { Console.result(quoted: entry.line) }
    }
    if output.json { Console.result(.object([("entries", .array(objects))])) }
  }
}

extension AuditReport {
  /// The number of stored entries and the number of the first, such as `188 entries from number 10 on`.
  fileprivate var keptText: String {
    let keptCount = recorded.count + 1 - firstKept
    let entries = keptCount == 1 ? "1 entry" : "\(keptCount) entries"
    return firstKept > 1 ? "\(entries) from number \(firstKept) on" : entries
  }
}

extension AuditEntry {
  /// The entry as one line: sequence number, time, event.
  var line: String {
    "\(sequence)  \(Timestamp(unixSeconds: time))  \(event.name)"
      + event.details.map { "  \($0)=\($1.line)" }.joined()
  }

  /// The entry as JSON.
  var json: JSONValue {
    .object(
      [("sequence", .integer(sequence)), ("time", .integer(time)), ("event", .string(event.name))]
        + event.details.map { ($0, $1.json) })
  }
}
