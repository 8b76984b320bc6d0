import ArgumentParser

struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure how long things take.", subcommands: [BenchLatency.self, BenchRounds.self, BenchOTP.self])
}
