import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastIssuer

struct ServiceTokens: Verb {
  static let configuration = CommandConfiguration(
    commandName: "tokens", abstract: "List the tokens that the service has issued and that have not expired.",
    discussion: """
      A bulletin revokes a token by its id, which the service and the device know, and no prover. Tokens of versions that kept no \
      record are not listed: the device's audit log has their ids, after the first round.
      """,
    examples: [
      "holdfast service tokens --dir service",
      "holdfast service tokens --dir service --device lock.json --json",
    ])

  @OptionGroup var service: ServiceOptions
  @OptionGroup var output: OutputOptions

  @Option(
    help: "Only the tokens for this device: its descriptor, or its id of 32 hexadecimal digits.", completion: .file())
  var device: String?

  mutating func perform() throws(Failure) {
    var deviceID: DeviceID?
    if let device { deviceID = try DeviceID(argument: device) }
    let now = try currentSeconds()
    let tokens = try changing(service) { (issued) throws(ServiceLedgerFault) in
      try issued.tokens(for: deviceID, now: now)
    }
    if output.json {
      Console.result(.object([("tokens", .array(tokens.map(\.json)))]))
      return
    }
    for token in tokens { Console.result(quoted: token.line) }
    if tokens.isEmpty { Console.note("no token is on record") }
  }
}

extension IssuanceRecord {
  fileprivate var line: String {
    let user = user.map { "  user \($0.description.quoted)" } ?? ""
    let app = "\(subject.description.quoted) \(version.text)\(user)"
    let times = "generation \(generation)  \(Timestamp(unixSeconds: issuedAt)) to \(Timestamp(unixSeconds: expires))"
    return "\(hexadecimal(tokenID))  device \(hexadecimal(device))  \(app)  \(times)"
  }

  fileprivate var json: JSONValue {
    .object([
      ("id", .string(hexadecimal(tokenID))), ("device", .string(hexadecimal(device))),
      ("subject", .string(subject.description)),
      ("version", .array([version.major, version.minor, version.patch].map { .integer($0) })),
      ("user", user.map { .string($0.description) } ?? .null), ("generation", .integer(generation)),
      ("issued", .integer(issuedAt)), ("expires", .integer(expires)),
    ])
  }
}
