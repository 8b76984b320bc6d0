import ArgumentParser
import HoldfastDevice
import HoldfastJSON
import HoldfastKeys
import HoldfastText

struct DeviceShow: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a device; with --json its descriptor, which enroll takes.",
    examples: [
      "holdfast device show --dir lock",
      "holdfast device show --dir lock --json > lock.json",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    if output.json {
      Console.result(owned.descriptor.json)
      return
    }
    let ledger = try owned.ledger()
    let summary = try recording { () throws(LedgerFault) in try ledger.summary() }
    let issuers = try recording { () throws(LedgerFault) in try ledger.issuers() }
    let storage = try owned.storage(of: ledger)
    Console.result("device id    \(hexadecimal(owned.descriptor.deviceID))")
    Console.result("key id       \(hexadecimal(owned.descriptor.keyID))")
    Console.result("clock floor  \(Timestamp(unixSeconds: summary.clockFloor))")
    Console.result("starts       \(summary.bootCount)")
    Console.result("audit        \(summary.audit.count) entries, head \(hexadecimal(summary.audit.head))")
    Console.result("kept         \(summary.keptCount) uses of tokens and nonces")
    Console.result(storage.name.padded(to: 13) + storage.state)
    Console.result("policy       \(owned.policyReading.summary)")
    Console.result("users        \(summary.userCount == 0 ? "none" : "\(summary.userCount)")")
    Console.result("issuers      \(issuers.isEmpty ? "none" : "\(issuers.count)")")
    for issuer in issuers { Console.result("  \(hexadecimal(issuer.keyID))\(issuer.algorithm.note)") }
  }
}

extension String {
  fileprivate func padded(to count: Int) -> String { self + String(repeating: " ", count: max(count - self.count, 0)) }
}

extension PolicyReading {
  /// The policy in one line.
  var summary: String {
    if let fault { return "denies everything: \(fault.text())" }
    let names = policy.commands.keys.map { "\($0)" }.sorted()
    return names.isEmpty ? "denies everything: it names no command" : names.joined(separator: ", ")
  }
}

extension PolicyFault {
  /// What is wrong with a policy that is in the file `name`.
  func text(_ name: String = "policy.json") -> String {
    switch self {
    case .unreadable: "\(name) is missing, not to be read, or not the owner's regular file"
    case .malformed(let mistake), .unexpected(let mistake): mistake.text(in: name)
    case .newerVersion: "\(name) is of a later version"
    }
  }
}
