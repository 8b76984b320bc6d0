import ArgumentParser
import HoldfastCore
import HoldfastAuthenticator
import HoldfastFormats
import HoldfastProver
import HoldfastTransport
import HoldfastUser

struct OTPActivate: Verb {
  static let configuration = CommandConfiguration(
    commandName: "activate", abstract: "Become a user of a device, with the code that its owner gave you.",
    discussion: """
      The device's owner gets the code from holdfast device user add NAME. Afterwards the device and the authenticator share \
      fresh secrets that nobody else has seen. With --same-pin-as, they need the PIN of a record that exists: the device first \
      checks it with a command, and if it is wrong, nothing is activated.
      """,
    examples: [
      "holdfast otp activate --connect unix:/run/lock.sock --authenticator keys",
      """
      holdfast otp activate --connect unix:/run/lock.sock --authenticator keys \\
      --code code.txt --new-pin-file pin.txt
      """,
      """
      holdfast otp activate --connect unix:/run/lock.sock --authenticator keys \\
      --same-pin-as alice --state phone --check-command configure
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

  @Option(help: "The user, of the same device, whose PIN or key the new secrets need instead of a new one.")
  var samePinAs: String?

  @OptionGroup var check: PINCheckOptions
  @OptionGroup var unlocking: UnlockingOptions

  @Flag(help: "Replace existing records of the same user.")
  var replace = false

  mutating func perform() throws(Failure) {
    let endpoint = try Endpoint(peerArgument: connect)
    if let samePinAs { return try activate(sharingWith: samePinAs) }
    guard !check.isGiven, !unlocking.isGiven else {
      throw Failure(
        .usage, "--state, --check-command, --pin-file, --key-file and --key-fd require --same-pin-as")
    }
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

  /// Activates under the PIN or key of another user's record, which the device checks first.
  private func activate(sharingWith user: String) throws(Failure) {
    guard !new.isGiven else {
      throw Failure(.usage, "--same-pin-as excludes the options for a new PIN, key or host")
    }
    let state = try check.stateFolder()
    let request = try check.request()
    let record = try authenticator.passwordRecord(of: user)
    let ownersCode = try code.read()
    let protection = try unlocking.secret(for: record.protection)
    let inquiry = try DeviceInquiry(at: connect, state: state, device: nil, waiting: waiting, pairing: pairing)
    let acceptor = try pairing.acceptor(for: inquiry.endpoint)
    defer { withExtendedLifetime(acceptor) {} }
    let activated: ActivatedUser
    do throws(UserExchangeError) {
      activated = try authenticator.person.activate(
        with: ownersCode, at: inquiry.endpoint, sharing: protection, of: record, checkedWith: request,
        as: Prover(state: state, keys: .app, warn: Console.warn), replacing: replace, options: inquiry.options)
    } catch { throw Failure(error, authenticator, state: state, endpoint: inquiry.endpoint) }
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
