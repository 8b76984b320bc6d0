import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL

struct DeviceUserList: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the users, their methods and lockouts, and the open activation and unlock codes.",
    examples: [
      "holdfast device user list --dir lock",
      "holdfast device user list --dir lock --json",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let ledger = try owned.ledger()
    let users = try recording { () throws(LedgerFault) in try ledger.users() }
    let summary = try recording { () throws(LedgerFault) in try ledger.summary() }
    let codes = try recording { () throws(LedgerFault) in try ledger.openCodes() }
    let now = max(summary.clockFloor, SystemClock().unixSeconds() ?? 0)
    let open = codes.filter { $0.expires > now }
    if output.json {
      Console.result(
        .object([
          ("users", .array(users.map { $0.json(at: now) })),
          ("codes", .array(open.map { $0.json(at: now) })),
        ]))
    } else {
      for user in users { Console.result(user.line(at: now)) }
      for code in open { Console.result(code.line(at: now)) }
      if users.isEmpty, open.isEmpty { Console.note("there are no users") }
    }
  }
}

extension LedgerUser {
  fileprivate func line(at now: UInt64) -> String {
    let methods = CodePurpose.allCases.compactMap { record.accounts[$0]?.method.text }.joined(separator: ", ")
    let noun = record.failureCount == 1 ? "code" : "codes"
    let failures = record.failureCount == 0 ? "" : "; \(record.failureCount) \(noun) rejected"
    let demanded = demand.map { "; demands \($0.text)" } ?? ""
    let spare = main.map { "; spare authenticator of \($0)" } ?? ""
    return "\(name)  \(methods)\(spare)\(demanded)\(failures)\(lockText(at: now))"
  }

  fileprivate func json(at now: UInt64) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("user", .string(name.description)), ("otp", record.accounts[.otp].map { .string($0.method.text) } ?? .null),
      ("seal", record.accounts[.seal].map { .string($0.method.text) } ?? .null),
      ("failures", .integer(record.failureCount)),
      ("locked_seconds", .integer(lock(at: now) ?? 0)),
      ("locked_until", lock(at: now) == nil ? .null : .integer(record.lockedUntil)),
      ("spare_of", main.map { .string($0.description) } ?? .null),
    ]
    members += demand.members
    let accounts = CodePurpose.allCases.compactMap { purpose in
      record.accounts[purpose].map { account in
        JSONValue.object([
          ("purpose", .string(purpose == .otp ? "otp" : "seal")), ("method", .string(account.method.text)),
          ("next_position", .integer(account.nextPosition)),
        ])
      }
    }
    members.append(("accounts", .array(accounts)))
    return .object(members)
  }

  private func lockText(at now: UInt64) -> String {
    guard let seconds = lock(at: now) else { return "" }
    if record.lockedUntil == maximumInteger { return "; locked out until unlocked" }
    return "; locked out until \(Timestamp(unixSeconds: record.lockedUntil)), \(seconds) s from now"
  }

  private func lock(at now: UInt64) -> UInt64? {
    record.lockedUntil > now ? record.lockedUntil - now : nil
  }
}

extension OpenCode {
  fileprivate func line(at now: UInt64) -> String {
    let use =
      switch purpose {
      case .activation: terms.renews ? "can unlock and choose a new PIN with a code" : "can activate with a code"
      case .unlock: "can be unlocked with a code"
      }
    let spare = terms.main.map { ", a spare authenticator of \($0)" } ?? ""
    let demanded = terms.demand.map { ", demands \($0.text)" } ?? ""
    return "\(user)  \(use), valid for \(expires - now) s\(spare)\(demanded)"
  }

  fileprivate func json(at now: UInt64) -> JSONValue {
    var members: [(String, JSONValue)] = [
      ("user", .string(user.description)), ("for", .string(purpose == .activation ? "activation" : "unlock")),
      ("seconds_remaining", .integer(expires - now)), ("new_pin", .bool(terms.renews)),
      ("spare_of", terms.main.map { .string($0.description) } ?? .null),
    ]
    members += terms.demand.members
    return .object(members)
  }
}

extension CodeMethod {
  /// The method in one word, such as `TOTP-SHA1-6-30s`, or the suite.
  var text: String {
    switch self {
    case .hotp(let hash, let length): "HOTP-\(hash.name)-\(length.digits)"
    case .totp(let hash, let length, let period): "TOTP-\(hash.name)-\(length.digits)-\(period)s"
    case .ocra(let suite): suite.text.description
    }
  }
}

struct DeviceUserRemove: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a user and the user's open codes. A running device applies this at once.",
    discussion: "NAME#2 and NAME#3 remove only that spare authenticator; the user's name removes all authenticators.",
    examples: [
      "holdfast device user remove --dir lock alice",
      "holdfast device user remove --dir lock 'alice#2'",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The user's name.")
  var name: String

  func check() throws(Failure) { _ = try BoundedText<32>(userArgument: name) }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let user = try BoundedText<32>(userArgument: name)
    let ledger = try owned.ledger()
    let isUser = try recording { () throws(LedgerFault) in try ledger.users() }.contains { $0.name == user }
    let now = SystemClock().unixSeconds()
    let isRemoved = try recording { () throws(LedgerFault) in try ledger.removeUser(user, realClock: now) }
    guard isRemoved else {
      throw Failure(
        .malformed, "there is no user with that name, and no open activation for one",
        hint: "to list the users: holdfast device user list \(Owned.option) \(owned.path.shellWord)")
    }
    if output.json {
      let state = isUser ? "removed" : "activation-removed"
      Console.result(.object([("user", .string(user.description)), ("state", .string(state))]))
    } else {
      Console.result(
        isUser ? "user \(user): removed" : "user \(user): the open activation is removed; there was no user yet")
    }
  }
}

struct DeviceUserLock: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "Lock a user by hand. A running device applies this at once.",
    discussion: """
      The device accepts no password and no seal of the user any more. Open codes for the user are withdrawn. The lock ends \
      at the time of --until, or when the user uses a code from holdfast device user unlock. Commands that need no code \
      depend on tokens only: to end them, let the issuer revoke the tokens.
      """,
    examples: [
      "holdfast device user lock --dir lock alice",
      "holdfast device user lock --dir lock alice --until 2026-12-24T08:00:00Z",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The user's name.")
  var name: String

  @Option(help: "The end of the lock by the device's clock, such as 2026-12-24T08:00:00Z, or Unix seconds.")
  var until: String?

  func check() throws(Failure) {
    _ = try BoundedText<32>(userArgument: name)
    _ = try end()
  }

  private func end() throws(Failure) -> UInt64 {
    guard let until else { return maximumInteger }
    return try Timestamp(argument: until, of: "--until").unixSeconds
  }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let (user, end) = (try BoundedText<32>(userArgument: name), try end())
    let ledger = try owned.ledger()
    let now = SystemClock().unixSeconds()
    let summary = try recording { () throws(LedgerFault) in try ledger.summary() }
    guard end > max(summary.clockFloor, now ?? 0) else {
      throw Failure(.usage, "--until has passed by the device's clock", hint: "name a later time, or leave it out")
    }
    try recording { () throws(LedgerFault) in try ledger.lockUser(user, until: end, realClock: now) }
    let time = until == nil ? nil : "\(Timestamp(unixSeconds: end))"
    if output.json {
      Console.result(
        .object([
          ("user", .string(user.description)), ("state", .string("locked")),
          ("locked_until", time == nil ? .null : .integer(end)),
        ]))
    } else {
      Console.result("user \(user): locked until \(time ?? "unlocked")")
    }
  }
}

struct DeviceUserUnlock: OwnerVerb {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Print a code with which a locked-out user may try again once.",
    discussion: """
      The user types it into: holdfast otp unlock --connect ENDPOINT --code -

      A user who has forgotten the PIN needs --new-pin. That code also gives the authenticator new secrets under a new PIN, and \
      spare authenticators keep theirs. The user types it into: \
      holdfast otp unlock --connect ENDPOINT --authenticator keys --code -
      """,
    examples: [
      "holdfast device user unlock --dir lock alice",
      "holdfast device user unlock --dir lock --new-pin alice",
    ])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "The user's name.")
  var name: String

  @Flag(help: "Let the user choose a new PIN as well: the code gives the user's authenticator new secrets.")
  var newPin = false

  func check() throws(Failure) { _ = try BoundedText<32>(userArgument: name) }

  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure) {
    let user = try BoundedText<32>(userArgument: name)
    let ledger = try owned.ledger()
    let code = try recording { () throws(LedgerFault) in
      var random = SystemRandom()
      let now = SystemClock().unixSeconds()
      return try newPin
        ? ledger.issueRenewal(of: user, realClock: now, random: &random)
        : ledger.issueUnlock(of: user, realClock: now, random: &random)
    }
    Console.result(user, code: code, json: output.json)
    let folder = newPin ? " --authenticator keys" : ""
    Console.note("\(user) unlocks with this code: holdfast otp unlock --connect ENDPOINT\(folder) --code -")
  }
}
