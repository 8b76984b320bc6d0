import ArgumentParser
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct DeviceShow: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a device; with --json, print its descriptor, which enroll needs.",
    examples: [
      "holdfast device show --dir lock",
      "holdfast device show --dir lock --json > lock.json",
      "holdfast device show --dir lock --all --json",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "With --json: print the state as well, such as the number of starts and the trusted keys.")
  var all = false

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    if output.json && !all {
      Console.result(owned.descriptor.json)
      return
    }
    let ledger = try owned.ledger()
    let summary = try recording { () throws(LedgerFault) in try ledger.summary() }
    let issuers = try recording { () throws(LedgerFault) in try ledger.issuers() }
    let storage = try owned.storage(of: ledger)
    if output.json {
      Console.result(
        .object(
          (owned.descriptor.json.members ?? []) + [
            ("private_key", .string(owned.keyText)), ("clock_floor", .integer(summary.clockFloor)),
            ("starts", .integer(summary.bootCount)), ("disorderly_ends", .integer(summary.disorderlyEnds)),
            ("unfinished_run", .bool(summary.hasUnfinishedRun)), ("audit_entries", .integer(summary.audit.count)),
            ("audit_head", .string(hexadecimal(summary.audit.head))), (storage.name, .string(storage.state)),
            ("audit_acknowledged", .integer(summary.acknowledgedAuditCount)),
            ("users", .integer(summary.userCount)), ("issuers", .array(issuers.map(\.json))),
          ]))
      return
    }
    Console.result("device id    \(hexadecimal(owned.descriptor.deviceID))")
    Console.result("key id       \(hexadecimal(owned.descriptor.keyID))")
    Console.result("private key  \(owned.keyText)")
    Console.result("clock floor  \(Timestamp(unixSeconds: summary.clockFloor))")
    Console.result("starts       \(summary.bootCount)\(summary.disorderlyNote)")
    Console.result("audit        \(summary.audit.count) entries, head \(hexadecimal(summary.audit.head))")
    if summary.acknowledgedAuditCount > 0 {
      Console.result("at home      entries up to \(summary.acknowledgedAuditCount)")
    }
    Console.result("kept         \(summary.keptCount) uses of tokens and nonces")
    Console.result(storage.name.padded(to: 13) + storage.state)
    Console.result("policy       \(try owned.policyReading(ledger).summary)")
    Console.result("users        \(summary.userCount == 0 ? "none" : "\(summary.userCount)")")
    Console.result("issuers      \(issuers.isEmpty ? "none" : "\(issuers.count)")")
    for issuer in issuers {
      Console.result("  \(hexadecimal(issuer.keyID))\(issuer.algorithm.note)\(issuer.terms.note)")
    }
  }
}

extension LedgerSummary {
  /// The note next to the number of starts.
  fileprivate var disorderlyNote: String {
    disorderlyEnds == 0 ? "" : ", of which \(disorderlyEnds) did not end in order"
  }
}

extension TrustTerms {
  /// The note next to the key id of an issuer whose trust has a begin, an end or a label.
  var note: String {
    (from.map { " from \(Timestamp(unixSeconds: $0))" } ?? "")
      + (until.map { " until \(Timestamp(unixSeconds: $0))" } ?? "")
      + (label.map { " \($0.description.quoted)" } ?? "")
  }
}

extension TrustedIssuer {
  /// The issuer as JSON: key id, generation floor, and the terms of its trust, if it has any.
  var json: JSONValue {
    .object(
      [("kid", .string(hexadecimal(keyID))), ("generation_floor", .integer(generationFloor))]
        + (terms.from.map { [("from", .integer($0))] } ?? []) + (terms.until.map { [("until", .integer($0))] } ?? [])
        + (terms.label.map { [("label", .string($0.description))] } ?? []))
  }
}

extension String {
  func padded(to count: Int) -> String { self + String(repeating: " ", count: max(count - self.count, 0)) }
}

extension PolicyReading {
  /// The policy in one line.
  var summary: String {
    if let fault { return "denies everything: \(fault.text(file.rawValue))" }
    let names = policy.commands.keys.map { "\($0)" }.sorted()
    return (number.map { "number \($0): " } ?? "")
      + (names.isEmpty ? "denies everything: it names no command" : names.joined(separator: ", "))
  }
}

struct DeviceReset: Verb {
  static let configuration = CommandConfiguration(
    commandName: "reset",
    abstract: "Turn this device into a new one, with another key and id, no trusted issuer and no valid token.",
    discussion: """
      The policy and the audit log stay, and the log records the reset, which cannot be undone. The command also repairs a \
      device whose creation or reset was interrupted. A device that is anchored in a TPM gets a new counter, even if its \
      ledger was rolled back.
      """,
    examples: [
      "holdfast device reset --dir lock --yes"
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Confirm the reset: every prover must be enrolled again.")
  var yes = false

  mutating func perform() throws(Failure) {
    let dir = try device.folder(because: "to reset an image, create another one and delete this one")
    guard yes else {
      throw Failure(
        .usage, "a reset cannot be undone: every prover of this device must be enrolled again",
        hint: "add --yes to do it"
      )
    }
    var random = SystemRandom()
    let folder: DeviceFolder
    do throws(DeviceFolderFault) {
      folder = try DeviceFolder.reset(at: dir, random: &random, clock: SystemClock())
    } catch {
      guard error == .file(.key, .corrupt) else { throw Failure(error, folder: dir) }
      throw Failure(damagedKeyAtResetOf: dir)
    }
    if output.json {
      Console.result(folder.descriptor.json)
    } else {
      Console.result("device \(hexadecimal(folder.descriptor.deviceID)) in \(dir)")
      Console.noteThatNobodyIsTrusted(by: folder)
    }
  }
}
