import ArgumentParser

struct OTP: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "One-time passwords, and the authenticator that makes them.",
    examples: [
      "holdfast otp --authenticator keys",
      "holdfast otp activate --connect unix:/run/lock.sock --authenticator keys",
    ],
    subcommands: [
      OTPCode.self, OTPActivate.self, OTPSync.self, OTPUnlock.self, OTPList.self, OTPProtect.self, OTPRemove.self,
      OTPImport.self, OTPExport.self, OTPState.self, OTPChallenge.self, OTPCheckHost.self, OTPCompute.self,
    ], defaultSubcommand: OTPCode.self)
}
