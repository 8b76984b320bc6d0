import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastTransport
import HoldfastUser

struct OTPSync: Verb {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Synchronise with the device's time and counters, which it sends in a sealed verdict.",
    discussion: "The host first proves itself to the device, with the enrolment in --state.",
    examples: [
      """
      holdfast otp sync --connect unix:/run/lock.sock --state phone \\
      --authenticator keys
      """
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var enrolled: StateOptions

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The user of the records; optional if there is only one user.")
  var user: String?

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    let inquiry = try DeviceInquiry(
      at: connect, state: enrolled.state, device: enrolled.device, waiting: waiting, pairing: pairing)
    let synchronised = try inquiry.ask(UserCommandName.synchronise, authenticator) {
      (prover, options) throws(UserExchangeError) in
      try authenticator.person.synchronise(user, as: prover, at: inquiry.endpoint, options: options)
    }
    let offset = synchronised.clockOffsetSeconds
    if output.json {
      Console.result(
        .object([
          ("user", .string(synchronised.user)), ("clock_ahead_seconds", .integer(offset > 0 ? offset.magnitude : 0)),
          ("clock_behind_seconds", .integer(offset < 0 ? offset.magnitude : 0)),
          ("otp_next", synchronised.otpNext.map { .integer($0) } ?? .null),
          ("seal_next", synchronised.sealNext.map { .integer($0) } ?? .null),
        ]))
    } else {
      let drift =
        offset == 0
        ? "the device agrees with this clock"
        : "the device is \(offset.magnitude) s \(offset > 0 ? "ahead of" : "behind") this clock"
      Console.result("\(synchronised.user): synchronised, \(drift)")
    }
    try warnOfUnseenCodes(synchronised)
  }

  /// Says what helps if the device has not seen more codes than it searches ahead, which it cannot correct by itself.
  private func warnOfUnseenCodes(_ synchronised: SynchronisedUser) throws(Failure) {
    let folder = try authenticator.open()
    let records = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.records(user: synchronised.user)
    }
    for record in records where record.deviceID == synchronised.device {
      guard record.method.isCounted, record.synchronisationAdvice(now: 0) == .required else { continue }
      let remedy =
        record.purpose == .otp
        ? "give it two passwords in a row, from holdfast otp code --pair" : "activate again with a new code"
      Console.warning(
        "the device has not seen the last \(record.unseenCodeCount) codes of record \(record.index), and searches no further: \(remedy)"
      )
    }
  }
}

struct OTPUnlock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Unlock yourself at a device that has locked you out, with a code from its owner.",
    discussion: """
      The device's owner gets the code from holdfast device user unlock NAME. If you forgot the PIN, the owner adds --new-pin, \
      and you add --authenticator: the authenticator then gets new secrets under a new PIN.
      """,
    examples: [
      "holdfast otp unlock --connect unix:/run/lock.sock",
      "holdfast otp unlock --connect unix:/run/lock.sock --code code.txt",
      """
      holdfast otp unlock --connect unix:/run/lock.sock --authenticator keys \\
      --code code.txt --new-pin-file pin.txt
      """,
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var code: OwnersCodeOptions

  @Option(help: "The authenticator's folder, to choose a new PIN with a code for it.", completion: .directory)
  var authenticator: String?

  @OptionGroup var new: NewProtectionOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let endpoint = try Endpoint(peerArgument: connect)
    let timeoutMilliseconds = try waiting.milliseconds()
    try new.check()
    guard authenticator != nil || !(new.replacesPIN || new.addsKey || new.bindHost) else {
      throw Failure(.usage, "a new PIN or key needs the authenticator's folder", hint: "add --authenticator DIR")
    }
    if let authenticator { return try renew(in: authenticator, endpoint, timeoutMilliseconds) }
    let ownersCode = try code.read()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    do throws(UserExchangeError) {
      try AuthenticatorUser.unlock(with: ownersCode, at: endpoint, timeoutMilliseconds: timeoutMilliseconds)
    } catch { throw Failure(error, nil, endpoint: endpoint) }
    if output.json {
      Console.result(.object([("state", .string("unlocked"))]))
    } else {
      Console.result("unlocked")
    }
  }

  /// Unlocks, and gives the authenticator new secrets under a new PIN or key.
  private func renew(in folder: String, _ endpoint: Endpoint, _ timeoutMilliseconds: Int) throws(Failure) {
    let options = AuthenticatorOptions(folder: folder)
    _ = try options.open()
    let ownersCode = try code.read()
    let protection = try new.secret()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let renewed: ActivatedUser
    do throws(UserExchangeError) {
      renewed = try options.person.unlock(
        with: ownersCode, at: endpoint, newProtection: protection, timeoutMilliseconds: timeoutMilliseconds)
    } catch { throw Failure(error, options, endpoint: endpoint) }
    if output.json {
      Console.result(.object([("user", .string(renewed.user)), ("state", .string("unlocked"))]))
    } else {
      Console.result("\(renewed.user): unlocked, with new secrets under the new PIN or key")
    }
  }
}
