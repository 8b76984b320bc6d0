import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats

struct OTPList: Verb {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Show the authenticator's records, without their secrets.",
    examples: [
      "holdfast otp list --authenticator keys",
      "holdfast otp list --authenticator keys --key-file /run/user/1000/card.key",
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The user whose records are shown; by default, all users.")
  var user: String?

  @Option(
    help: "A file with a key: say whether it can be given, without using it.", completion: .file())
  var keyFile: String?

  @Option(help: "An open file descriptor from which to read this key.")
  var keyFd: Int32?

  mutating func perform() throws(Failure) {
    guard keyFile == nil || keyFd == nil else {
      throw Failure(.usage, "--key-file and --key-fd cannot be combined")
    }
    let folder = try authenticator.open()
    let user = user
    let records = try authenticator.using { () throws(AuthenticatorFault) in try folder.records(user: user) }
    if let user, records.isEmpty {
      throw Failure(
        .denied, "there are no records of \(user)", hint: "without --user, holdfast otp list shows all records")
    }
    let waiting = try authenticator.using { () throws(AuthenticatorFault) in
      var waiting: [Record] = []
      for user in Set(records.map(\.user)).sorted() { waiting += try folder.waitingRecords(of: user) }
      return waiting
    }
    if output.json {
      var members: [(String, JSONValue)] = [
        ("records", .array(records.map(\.json))), ("waiting", .array(waiting.map(\.json))),
      ]
      if let canGiveKey { members.append(("can_give_key", .bool(canGiveKey))) }
      Console.result(.object(members))
    } else {
      for record in records { Console.result(record.line) }
      for record in waiting { Console.result("\(record.line), replaces the record above: otp sync finds out") }
      if records.isEmpty { Console.note("there are no records") }
      if let canGiveKey { Console.result("key: \(canGiveKey ? "can be given" : "cannot be given")") }
    }
  }

  /// Whether the key from the options is there and has a permitted length; nil without one. Whether it is the right one cannot be
  /// known.
  private var canGiveKey: Bool? {
    guard keyFile != nil || keyFd != nil else { return nil }
    do throws(Failure) {
      _ = try ExternalKey(
        file: keyFile, descriptor: keyFd, of: "--key-file", refusal: Failure(.usage, "a key is missing"))
      return true
    } catch { return false }
  }
}

extension Record {
  fileprivate var line: String {
    var text = "\(user) \(index): \(purpose.name), \(method.description), \(protection.text)"
    if !issuer.isEmpty { text += ", \(issuer)" }
    if method.isCounted { text += ", next counter \(nextCounter)" }
    if clockOffsetSeconds != 0 { text += ", clock \(clockOffsetSeconds > 0 ? "+" : "")\(clockOffsetSeconds) s" }
    if let demand { text += ", the owner demands \(demand.text)" }
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
