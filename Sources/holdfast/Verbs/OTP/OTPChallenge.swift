import ArgumentParser
import HoldfastAuthenticator
import HoldfastJSON
import HoldfastOpenSSL

struct OTPChallenge: Verb {
  static let configuration = CommandConfiguration(
    commandName: "challenge", abstract: "Make a challenge by which the device proves itself: for otp check-host.",
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
