import ArgumentParser
import HoldfastAuthenticator
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import HoldfastUser

struct OTPCheckHost: Verb {
  static let configuration = CommandConfiguration(
    commandName: "check-host",
    abstract: "Check a device's answer to a challenge, before you type a code into it.",
    usage: """
      holdfast otp check-host --authenticator DIR --device-challenge DIGITS --host-code CODE
      holdfast otp check-host --authenticator DIR --connect ENDPOINT --state DIR
      """,
    discussion: """
      With --connect, the command creates a challenge and asks the device for its code. Otherwise, give the code that the \
      device showed for the challenge from otp challenge. The exit status is 0 if and only if the device proved its \
      identity. A challenge is valid for one check.
      """,
    examples: [
      """
      holdfast otp check-host --connect unix:/run/lock.sock --state phone \\
      --authenticator keys
      """,
      """
      holdfast otp check-host --authenticator keys \\
      --device-challenge 0011223344556677 --host-code 12345678
      """,
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The device's own challenge, 16 hexadecimal digits.")
  var deviceChallenge: String?

  @Option(help: "The code that the device shows.")
  var hostCode: String?

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock, to ask the device for both values.")
  var connect: String?

  @Option(help: "For --connect: the state folder that enroll filled.", completion: .directory)
  var state: String?

  @Option(
    help: "For --connect: the device that must answer, by its id or its descriptor. By default, any enrolled device.",
    completion: .file())
  var device: String?

  static let isAnsweredByStatus = true
  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    if let connect {
      guard let state, deviceChallenge == nil, hostCode == nil else {
        throw Failure(.usage, "--connect requires --state, and excludes --device-challenge and --host-code")
      }
      try ask(try DeviceInquiry(at: connect, state: state, device: device, waiting: waiting, pairing: pairing))
    } else {
      guard state == nil, device == nil, !pairing.pair else {
        throw Failure(.usage, "--state, --device and --pair require --connect")
      }
      guard let deviceChallenge, let hostCode else {
        throw Failure(.usage, "either --device-challenge and --host-code are required, or --connect and --state")
      }
      try check(hostCode, deviceChallenge)
    }
  }

  /// Checks the values that the user read from the device.
  private func check(_ hostCode: String, _ deviceChallenge: String) throws(Failure) {
    guard let deviceChallenge = DeviceChallenge(deviceChallenge) else {
      throw Failure(.usage, "--device-challenge must be 16 hexadecimal digits")
    }
    let folder = try authenticator.open()
    let record = try record.find(.host, in: folder, authenticator)
    let isRight: Bool
    do throws(AuthenticatorFault) {
      isRight = try folder.checkHostCode(hostCode, deviceChallenge: deviceChallenge, of: record)
    } catch {
      guard error != .badQuestion else { throw Failure(.usage, "--host-code is not of the form of a host code") }
      throw Failure(error, folder: authenticator.authenticator)
    }
    try report(isRight, record, nil)
  }

  /// Challenges the device and reports its answer.
  private func ask(_ inquiry: DeviceInquiry) throws(Failure) {
    let record = try record.find(.host, in: try authenticator.open(), authenticator)
    let challenge = try inquiry.ask(UserCommandName.hostCode, authenticator) {
      (prover, options) throws(UserExchangeError) in
      try authenticator.person.challengeDevice(with: record, as: prover, at: inquiry.endpoint, options: options)
    }
    try report(challenge != nil, record, challenge)
  }

  /// Reports the result. `challenge` is the device's, if the device was asked for it.
  private func report(_ isRight: Bool, _ record: Record, _ challenge: DeviceChallenge?) throws(Failure) {
    if output.json {
      var members = [("proved", JSONValue.bool(isRight)), ("user", .string(record.user))]
      if connect != nil { members.append(("device_challenge", challenge.map { .string($0.digits) } ?? .null)) }
      Console.result(.object(members))
    } else if isRight {
      Console.result("the device proved itself" + (challenge.map { ", its challenge is \($0.digits)" } ?? ""))
    }
    guard isRight else {
      throw Failure(
        .impostor, "the device did not prove itself",
        hint: connect == nil
          ? "type no code into it; create another challenge to try again"
          : "type no code into it; does it know \(record.user) from this activation?"
      ).reported(output.json)
    }
  }
}

extension Failure {
  fileprivate func reported(_ hasResult: Bool) -> Failure { hasResult ? afterResult() : self }
}

struct OTPChallenge: Verb {
  static let configuration = CommandConfiguration(
    commandName: "challenge",
    abstract: "Create a challenge with which a device can prove its identity, for otp check-host.",
    examples: [
      "holdfast otp challenge --authenticator keys --user alice"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let folder = try authenticator.open()
    let record = try record.find(.host, in: folder, authenticator)
    var random = SystemRandom()
    let challenge = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.challengeDevice(record, random: &random)
    }
    if output.json {
      Console.result(.object([("challenge", .string(challenge.digits)), ("user", .string(record.user))]))
    } else {
      Console.result(challenge.digits)
    }
  }
}
