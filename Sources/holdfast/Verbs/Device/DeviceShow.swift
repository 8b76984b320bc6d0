import ArgumentParser
import HoldfastDevice
import HoldfastJSON
import HoldfastKeys

struct DeviceShow: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a device; with --json its descriptor, which enroll takes.")

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let folder = try device.open()
    if output.json {
      Console.result(folder.descriptor.json)
      return
    }
    let ledger = try device.openLedger(folder)
    let summary = try recording { () throws(LedgerFault) in try ledger.summary() }
    let issuers = try recording { () throws(LedgerFault) in try ledger.issuers() }
    let reading = folder.policy.read()
    Console.result("device id    \(hexadecimal(folder.descriptor.deviceID))")
    Console.result("key id       \(hexadecimal(folder.descriptor.keyID))")
    Console.result("clock floor  \(summary.clockFloor)")
    Console.result("starts       \(summary.bootCount)")
    Console.result("audit        \(summary.audit.count) entries, head \(hexadecimal(summary.audit.head))")
    Console.result("anchor       \(folder.counter?.text ?? "none")")
    Console.result("policy       \(reading.summary)")
    Console.result("issuers      \(issuers.isEmpty ? "none" : "\(issuers.count)")")
    for issuer in issuers { Console.result("  \(hexadecimal(issuer.keyID))\(issuer.algorithm.note)") }
  }
}

extension CounterPlace {
  fileprivate var text: String { "counter 0x\(String(index, radix: 16)) of the TPM at \(tpm)" }
}

extension PolicyReading {
  /// The policy in one line.
  var summary: String {
    if let fault { return "denies everything: \(fault.text)" }
    let names = policy.commands.keys.map { "\($0)" }.sorted()
    return names.isEmpty ? "denies everything: it names no command" : names.joined(separator: ", ")
  }
}

extension PolicyFault {
  var text: String {
    switch self {
    case .unreadable: "policy.json is missing, not to be read, or not the owner's regular file"
    case .malformed: "policy.json is not strict JSON, or too long"
    case .unexpected: "policy.json has a member that is missing, unknown or of another kind"
    case .newerVersion: "policy.json is of a later version"
    }
  }
}
