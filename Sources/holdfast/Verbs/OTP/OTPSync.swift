import ArgumentParser
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
    let synchronised = try inquiry.ask(authenticator) { (prover, options) throws(UserExchangeError) in
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
  }
}

struct OTPUnlock: Verb {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Unlock yourself at a device that has locked you out, with a code from its owner.",
    discussion: "The device's owner gets the code from holdfast device user unlock NAME.",
    examples: [
      "holdfast otp unlock --connect unix:/run/lock.sock",
      "holdfast otp unlock --connect unix:/run/lock.sock --code code.txt",
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var code: OwnersCodeOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let endpoint = try Endpoint(peerArgument: connect)
    let timeoutMilliseconds = try waiting.milliseconds()
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
}
