import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats

struct OTPList: Verb {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Show the authenticator's records, without their secrets.",
    examples: [
      "holdfast otp list --authenticator keys"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The user whose records are shown; by default, all users.")
  var user: String?

  mutating func perform() throws(Failure) {
    let folder = try authenticator.open()
    let user = user
    let records = try authenticator.using { () throws(AuthenticatorFault) in try folder.records(user: user) }
    if output.json {
      Console.result(.object([("records", .array(records.map(\.json)))]))
    } else {
      for record in records { Console.result(record.line) }
      if records.isEmpty { Console.note("there are no records") }
    }
  }
}

extension Record {
  fileprivate var line: String {
    var text = "\(user) \(index): \(purpose.name), \(method.description), \(protection.text)"
    if !issuer.isEmpty { text += ", \(issuer)" }
    if method.isCounted { text += ", next counter \(nextCounter)" }
    if clockOffsetSeconds != 0 { text += ", clock \(clockOffsetSeconds > 0 ? "+" : "")\(clockOffsetSeconds) s" }
    if !isConfirmed { text += ", never confirmed" }
    if let change = change.text { text += ", \(change)" }
    return text
  }

  fileprivate var json: JSONValue {
    func number(_ value: UInt64?) -> JSONValue { value.map { .integer($0) } ?? .null }
    return .object([
      ("user", .string(user)), ("index", .integer(UInt64(index))), ("purpose", .string(purpose.name)),
      ("issuer", .string(issuer)), ("device_id", deviceID.map { .string(hexadecimal($0)) } ?? .null),
      ("method", .string(method.description)),
      ("protection", .string(protection.isEmpty ? "none" : protection.names.joined(separator: "+"))),
      ("requires", .array(protection.names.map { .string($0) })),
      ("next_counter", method.isCounted ? .integer(nextCounter) : .null),
      ("acknowledged_counter", method.isCounted ? .integer(acknowledgedCounter) : .null),
      ("clock_ahead_seconds", .integer(UInt64(max(clockOffsetSeconds, 0)))),
      ("clock_behind_seconds", .integer(UInt64(max(-clockOffsetSeconds, 0)))),
      ("last_time_step", number(lastTimeStep)), ("last_synchronised", number(lastSynchronised)),
      ("look_ahead_window", number(lookAheadWindow)), ("confirmed", .bool(isConfirmed)),
      ("change_open", .bool(change == .open)), ("interrupted", .bool(change == .erased || change == .importing)),
    ])
  }
}

extension RecordPurpose {
  var name: String {
    switch self {
    case .otp: "otp"
    case .seal: "seal"
    case .host: "host"
    }
  }
}

extension ProtectionInputs {
  private static let named: [(input: ProtectionInputs, name: String, text: String)] = [
    (.pin, "pin", "PIN"), (.key, "key", "key"), (.host, "host", "bound to a host"),
  ]

  /// The names of the inputs in JSON.
  var names: [String] { Self.named.filter { contains($0.input) }.map(\.name) }

  /// The inputs in words.
  var text: String {
    let texts = Self.named.filter { contains($0.input) }.map(\.text)
    return ((isDisjoint(with: [.pin, .key]) ? ["no PIN"] : []) + texts).joined(separator: ", ")
  }
}

extension ChangeProgress {
  fileprivate var text: String? {
    switch self {
    case .none, .prepared: nil
    case .open: "change not confirmed"
    case .erased: "change interrupted"
    case .importing: "import interrupted"
    }
  }
}

extension CodeMethod {
  /// The method in the notation of the standards.
  var description: String {
    switch self {
    case .hotp(let hash, let length): "HOTP \(hash.name) \(length.digits) digits"
    case .totp(let hash, let length, let period): "TOTP \(hash.name) \(length.digits) digits \(period) s"
    case .ocra(let suite): suite.text.description
    }
  }
}

struct OTPRemove: Verb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a user's records, or one of them, for good.",
    examples: [
      "holdfast otp remove --authenticator keys --user alice --index 2 --yes"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The user of the records.")
  var user: String

  @Option(help: "The index of the record, 1 to 8; by default, all of the user's records.")
  var index: Int?

  @Flag(help: "Confirm the removal: the secrets cannot be restored.")
  var yes = false

  mutating func perform() throws(Failure) {
    guard yes else {
      throw Failure(
        .usage, "a removed record cannot be restored", hint: "add --yes to remove it")
    }
    let folder = try authenticator.open()
    let (user, index) = (user, index)
    let count = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.remove(user: user, index: index)
    }
    if output.json {
      Console.result(.object([("user", .string(user)), ("removed", .integer(UInt64(count)))]))
    } else {
      Console.result("\(user): \(count) removed")
    }
  }
}
