import ArgumentParser
import HoldfastCore

struct OTPComputeTOTP: Verb {
  static let configuration = CommandConfiguration(
    commandName: "totp", abstract: "The code of a time (RFC 6238).",
    examples: [
      "holdfast otp compute totp --secret-file secret.hex --time 59 --digits 8",
      "holdfast otp compute totp --secret-file - --format base32",
    ])

  @OptionGroup var secret: ComputeSecretOptions
  @OptionGroup var code: ComputeCodeOptions
  @OptionGroup var time: ComputeTimeOptions

  @Option(parsing: .unconditional, help: "The seconds of a time step, 1 to 86400.")
  var period: String = "30"

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let code = try code.checked()
    let period = try number(period, of: "--period", in: 1...CodeMethod.maximumPeriodSeconds)
    let step = TOTP.timeStep(at: try time.unixSeconds(), periodSeconds: period)
    let key = try secret.read()
    warn(ofShort: key, for: code.hash)
    printCode(try code.compute(counter: step, key: key), [("time_step", .integer(step))])
  }
}
