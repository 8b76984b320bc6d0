import ArgumentParser

struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure how long things take.",
    examples: [
      "holdfast bench latency --rounds 200",
      "holdfast bench otp",
    ],
    subcommands: [BenchLatency.self, BenchRounds.self, BenchOTP.self])
}
