import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastTransport
import HoldfastUser

struct OTPActivate: Verb {
  static let configuration = CommandConfiguration(
    commandName: "activate", abstract: "Become a user of a device, with the code that its owner gave you.",
    discussion: """
      The device's owner gets the code from holdfast device user add NAME. Afterwards the device and the authenticator share \
      fresh secrets that nobody else has seen.
      """,
    examples: [
      "holdfast otp activate --connect unix:/run/lock.sock --authenticator keys",
      """
      holdfast otp activate --connect unix:/run/lock.sock --authenticator keys \\
      --code code.txt --new-pin-file pin.txt
      """,
    ])

  @Option(help: "The device's endpoint, such as unix:/run/lock.sock.")
  var connect: String

  @OptionGroup var code: OwnersCodeOptions
  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var new: NewProtectionOptions
  @OptionGroup var waiting: TimeoutOptions
  @OptionGroup var pairing: PairingOptions
  @OptionGroup var output: OutputOptions

  @Flag(help: "Replace existing records of the same user.")
  var replace = false

  mutating func perform() throws(Failure) {
    let endpoint = try Endpoint(peerArgument: connect)
    let timeoutMilliseconds = try waiting.milliseconds()
    let ownersCode = try code.read()
    _ = try authenticator.create()
    let protection = try new.secret()
    let acceptor = try pairing.acceptor(for: endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let activated: ActivatedUser
    do throws(UserExchangeError) {
      activated = try authenticator.person.activate(
        with: ownersCode, at: endpoint, protection: protection, replacing: replace,
        timeoutMilliseconds: timeoutMilliseconds)
    } catch { throw Failure(error, authenticator, endpoint: endpoint) }
    report(activated.user, activated.device)
  }

  private func report(_ user: String, _ deviceID: DeviceID) {
    if output.json {
      Console.result(
        .object([
          ("user", .string(user)), ("device_id", .string(hexadecimal(deviceID))), ("state", .string("activated")),
        ]))
    } else {
      Console.result("\(user): activated on device \(hexadecimal(deviceID))")
    }
  }
}
