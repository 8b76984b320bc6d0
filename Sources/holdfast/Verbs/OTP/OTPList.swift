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
