import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats

struct DeviceCouriers: Verb {
  static let configuration = CommandConfiguration(
    commandName: "couriers",
    abstract: "Show the provers that carried mail: the pages of the audit log that they got, and what they brought.",
    discussion: """
      A courier is known by its token. The counts are at most a minute old while the device is served. The device distinguishes the \
      1000 couriers that came last.
      """,
    examples: ["holdfast device couriers --dir lock"])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let folder = try DeviceFolder.opened(try device.folder(because: "a board has no couriers"))
    let ledger = try folder.ledger()
    let couriers = try recording { () throws(LedgerFault) in try ledger.couriers() }
    if output.json {
      Console.result(.object([("couriers", .array(couriers.map(\.json)))]))
    } else {
      for courier in couriers { Console.result(quoted: courier.line) }
    }
  }
}

extension CourierRecord {
  fileprivate var line: String {
    "token \(hexadecimal(courier.tokenID))  \(courier.subject.description.quoted)  \(counts.pages) pages  "
      + "\(counts.receipts) receipts  \(counts.bulletins) bulletins  last \(Timestamp(unixSeconds: last))"
  }

  fileprivate var json: JSONValue {
    .object([
      ("token", .string(hexadecimal(courier.tokenID))),
      ("issuer", courier.issuer.map { .string(hexadecimal($0)) } ?? .null),
      ("subject", .string(courier.subject.description)), ("pages", .integer(counts.pages)),
      ("receipts", .integer(counts.receipts)), ("bulletins", .integer(counts.bulletins)), ("last", .integer(last)),
    ])
  }
}
