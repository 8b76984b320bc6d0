import ArgumentParser

struct OTP: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "One-time passwords.", subcommands: [OTPCompute.self])
}
