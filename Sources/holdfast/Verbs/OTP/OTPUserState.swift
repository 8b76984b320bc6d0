import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastUser

struct OTPUserState: Verb {
  static let configuration = CommandConfiguration(
    commandName: "user-state", abstract: "Ask a device whether it has locked a user out, before a code is typed.",
    discussion: """
      The host first proves itself to the device, with the enrolment in --state. The device's policy must name the command \
      user-state. The question costs no attempt.
      """,
    examples: [
      """
      holdfast otp user-state --connect unix:/run/lock.sock --state phone \\
      --user alice
      """
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var enrolled: StateOptions

  @Option(help: "The user's name, at most 32 bytes.")
  var user: String

  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let name = try BoundedText<32>(userArgument: user)
    let inquiry = try DeviceInquiry(
      at: connect, state: enrolled.state, device: enrolled.device, waiting: waiting, pairing: pairing)
    let state = try inquiry.ask(UserCommandName.state) { (prover, options) throws(UserExchangeError) in
      try AuthenticatorUser.state(of: name.description, as: prover, at: inquiry.endpoint, options: options)
    }
    if output.json {
      Console.result(
        .object([
          ("user", .string(user)), ("locked", .bool(state.lockedSeconds > 0)),
          ("failures", .integer(state.failureCount)),
          ("seconds", .integer(state.lockedSeconds)),
        ]))
    } else {
      let lock = state.lockedSeconds == 0 ? "not locked out" : "locked out \(lockoutText(state.lockedSeconds))"
      Console.result("\(user): \(lock), \(state.failureCount) \(state.failureCount == 1 ? "code" : "codes") rejected")
    }
  }
}

/// The seconds, a hundred years, from which a lockout has no end: the owner has to unlock the user.
let endlessLockoutSeconds: UInt64 = 100 * 366 * 86_400

private func lockoutText(_ seconds: UInt64) -> String {
  seconds < endlessLockoutSeconds ? "for \(seconds) s" : "until the device's owner unlocks the user"
}

struct OTPShouldSync: Verb {
  static let configuration = CommandConfiguration(
    commandName: "should-sync", abstract: "Say whether the authenticator should be synchronised with its devices.",
    discussion: """
      This needs no device: it looks at the number of passwords that the device is not known to have seen, and at the time \
      since the clocks were compared.
      """,
    examples: [
      "holdfast otp should-sync --authenticator keys"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The user whose records are looked at; by default, all users.")
  var user: String?

  mutating func perform() throws(Failure) {
    let folder = try authenticator.open()
    let user = user
    let records = try authenticator.using { () throws(AuthenticatorFault) in try folder.records(user: user) }
    guard !records.isEmpty else {
      throw Failure(user == nil ? AuthenticatorFault.noRecords : .unknownRecord, folder: authenticator.authenticator)
    }
    // A clock that is not known to be right is a reason to synchronise.
    let now = SystemClock().unixSeconds() ?? 0
    let advised = records.map { ($0, $0.synchronisationAdvice(now: now)) }
    if output.json {
      Console.result(
        .object([
          ("should_sync", .bool(advised.contains { $0.1 != .notNeeded })),
          (
            "records",
            .array(
              advised.map { (record, advice) in
                .object([
                  ("user", .string(record.user)), ("index", .integer(UInt64(record.index))),
                  ("advice", .string(advice.word)), ("unseen_codes", .integer(record.unseenCodeCount)),
                ])
              })
          ),
        ]))
    } else {
      for (record, advice) in advised {
        Console.result("\(record.user) \(record.index): synchronisation \(advice.word)")
      }
      if advised.contains(where: { $0.1 != .notNeeded }) {
        Console.note("synchronise with: holdfast otp sync --connect ENDPOINT --state STATE --authenticator DIR")
      }
    }
  }
}

extension SynchronisationAdvice {
  /// The advice in a word or two.
  var word: String {
    switch self {
    case .notNeeded: "not needed"
    case .advised: "advised"
    case .required: "required"
    }
  }
}
