import ArgumentParser

struct OTPCompute: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compute", abstract: "Compute a code from explicit inputs, to compare implementations.",
    discussion: "Nothing is stored: neither the secret nor the counter.",
    examples: [
      "holdfast otp compute totp --secret-file secret.hex"
    ],
    subcommands: [OTPComputeHOTP.self, OTPComputeTOTP.self, OTPComputeOCRA.self])
}
