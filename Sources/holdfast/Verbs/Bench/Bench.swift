import ArgumentParser

struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure speed: proofs, rounds, measurements, a board and one-time passwords.",
    examples: [
      "holdfast bench latency --rounds 200 --svg latency.svg",
      "holdfast bench compare before.json after.json",
    ],
    subcommands: [
      BenchLatency.self, BenchRounds.self, BenchMeasure.self, BenchBoard.self, BenchOTP.self, BenchCompare.self,
    ])
}
