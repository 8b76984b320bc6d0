import ArgumentParser
import HoldfastAuthenticator
import HoldfastJSON

struct OTPRemove: Verb {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a user's records, or one of them, for good.",
    examples: [
      "holdfast otp remove --authenticator keys --user alice --index 2 --yes"
    ])

  @OptionGroup var authenticator: AuthenticatorOptions
  @OptionGroup var output: OutputOptions

  @Option(help: "Whose records.")
  var user: String

  @Option(help: "Which one, 1 to 8; all of them when absent.")
  var index: Int?

  @Flag(help: "Do it: nobody can bring the secrets back.")
  var yes = false

  mutating func perform() throws(Failure) {
    guard yes else {
      throw Failure(
        .usage, "a removed record cannot be brought back: its codes are gone", hint: "add --yes to do it")
    }
    let folder = try authenticator.open()
    let (user, index) = (user, index)
    let count = try authenticator.using { () throws(AuthenticatorFault) in
      try folder.remove(user: user, index: index)
    }
    if output.json {
      Console.result(.object([("user", .string(user)), ("removed", .integer(UInt64(count)))]))
    } else {
      Console.result("\(user): \(count) removed")
    }
  }
}
