import ArgumentParser

struct OTPComputeHOTP: Verb {
  static let configuration = CommandConfiguration(
    commandName: "hotp", abstract: "The code of a counter (RFC 4226).",
    examples: [
      "holdfast otp compute hotp --secret-file secret.hex --counter 0"
    ])

  @OptionGroup var secret: ComputeSecretOptions
  @OptionGroup var code: ComputeCodeOptions

  @Option(parsing: .unconditional, help: "The counter, 0 to 18446744073709551615.")
  var counter: String

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    let code = try code.checked()
    let counter = try number(counter, of: "--counter", in: 0...UInt64.max)
    let key = try secret.read()
    warn(ofShort: key, for: code.hash)
    printCode(try code.compute(counter: counter, key: key), [])
  }
}
