import ArgumentParser
import HoldfastAuthenticator
import HoldfastJSON

struct OTPCheckHost: Verb {
  static let configuration = CommandConfiguration(
    commandName: "check-host",
    abstract: "Check the code by which the device answers a challenge, before typing any into it.",
    discussion: "Exit status 0 if and only if the device proved itself. A challenge serves one check.")

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var record: RecordOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "The device's own challenge, 16 hexadecimal digits.")
  var deviceChallenge: String

  @Option(help: "The code that the device shows.")
  var hostCode: String

  static let isAnsweredByStatus = true

  mutating func perform() throws(Failure) {
    guard let deviceChallenge = DeviceChallenge(deviceChallenge) else {
      throw Failure(.usage, "--device-challenge is 16 hexadecimal digits")
    }
    let folder = try authenticator.open()
    let record = try record.find(.host, in: folder, authenticator)
    let isRight: Bool
    do throws(AuthenticatorFault) {
      isRight = try folder.checkHostCode(hostCode, deviceChallenge: deviceChallenge, of: record)
    } catch {
      guard error != .badQuestion else { throw Failure(.usage, "--host-code does not have the digits of a host code") }
      throw Failure(error, folder: authenticator.authenticator)
    }
    if output.json {
      Console.result(.object([("proved", .bool(isRight)), ("user", .string(record.user))]))
    } else if isRight {
      Console.result("the device proved itself")
    }
    guard isRight else {
      throw Failure(
        .impostor, "the device did not prove itself", hint: "type no code into it; make another challenge to try again"
      ).reported(output.json)
    }
  }
}

extension Failure {
  fileprivate func reported(_ hasResult: Bool) -> Failure { hasResult ? afterResult() : self }
}
