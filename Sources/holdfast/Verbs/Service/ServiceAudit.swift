import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastIssuer

struct ServiceAudit: Verb {
  static let configuration = CommandConfiguration(
    commandName: "audit",
    abstract: "Print the audit log of a device, as far as provers have carried it home.",
    discussion: """
      A device gives pages of its log to provers if its policy names this service as the log's home, and holdfast sync hands them in. \
      The exit status is 0 if no entry is missing that the service knows of.
      """,
    examples: [
      "holdfast service audit --dir service --device lock.json",
      "holdfast service audit --dir service --device lock.json \\\n--status accepted --json",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The device: its descriptor, or its id of 32 hexadecimal digits.", completion: .file())
  var device: String

  @OptionGroup var choice: AuditSelectionOptions

  mutating func perform() throws(Failure) {
    let selection = try choice.selection()
    let deviceID = try DeviceID(argument: device)
    let records = try serving(service.dir) { () throws(ServiceFolderFault) in try service.folder.issuedBaselines() }
    let state: ReceivedLog
    do throws(ServiceLedgerFault) { state = try records.receivedLog(of: deviceID) } catch {
      throw Failure(error, folder: service.dir)
    }
    var entries: [JSONValue] = []
    try selection.forEach(in: LogAtHome(records: records, device: deviceID, state: state), count: state.count) {
      entry in
      if output.json { entries.append(entry.json) } else { Console.result(quoted: entry.line) }
    }
    if output.json {
      Console.result(
        .object([
          ("device", .string(hexadecimal(deviceID))), ("through", .integer(state.through?.count ?? 0)),
          ("count", .integer(state.count)), ("missing", state.missing.map { .integer($0) } ?? .null),
          ("forked", .bool(state.isForked)), ("entries", .array(entries)),
        ]))
    }
    if state.isForked {
      throw Failure(
        .denied, "the log is forked: the device was restored from a copy, or somebody changed its log",
        hint: "compare with the log at the device: holdfast device audit"
      ).afterResult()
    }
    if let missing = state.missing {
      throw Failure(
        .denied, "the log is not complete: entry \(missing) is missing, of \(state.count)",
        hint: "provers bring it: holdfast sync"
      ).afterResult()
    }
  }
}

/// The entries of a device's log at its home, for ``AuditSelection``.
private struct LogAtHome: AuditLog {
  let records: IssuedBaselinesDatabase
  let device: DeviceID
  let state: ReceivedLog

  func auditHead() -> AuditChain { state.through ?? AuditChain() }

  func auditEntries(after sequence: UInt64, limit: UInt64) throws(LedgerFault) -> [AuditEntry] {
    do throws(ServiceLedgerFault) {
      return try records.receivedEntries(of: device, after: sequence, limit: limit).compactMap {
        try? AuditEntry($0.span)
      }
    } catch { throw .failed }
  }

  /// Returns that nothing is broken: the service has checked each page before it stored it.
  func verifyAudit() -> AuditReport { AuditReport(recorded: auditHead()) }
}
