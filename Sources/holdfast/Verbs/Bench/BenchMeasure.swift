import ArgumentParser
import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastMeasurement

/// The benchmark of measurements in one process. The first one is shown apart, because later ones may know what is unchanged.
struct BenchMeasure: Verb {
  static let configuration = CommandConfiguration(
    commandName: "measure", abstract: "Measure how long a measurement of this program and its host takes.",
    discussion: """
      All measurements are made in one process. The first one is shown apart from the later ones, which may know that code is \
      unchanged. The executable file is hashed at the same time as the other components: as a part of the time, it is what it \
      takes beyond them.
      """,
    examples: [
      "holdfast bench measure --rounds 100 --svg measure.svg",
      "holdfast bench measure --tree-digests",
    ])

  @Option(help: "The number of measurements, 2 to 1000000.")
  var rounds: Int = 100

  @Flag(help: "Hash code as trees, whose chunks all processors hash at once, as enroll --tree-digests demands.")
  var treeDigests = false

  @OptionGroup var budget: DrawnBudget
  @OptionGroup var picture: PictureOptions
  @OptionGroup var output: OutputOptions

  static let isMeasuring = true

  mutating func perform() throws(Failure) {
    guard (2...1_000_000).contains(rounds) else { throw Failure(.usage, "--rounds must be from 2 to 1000000") }
    try budget.check()
    try picture.check()
    // The secret of a new host goes to a temporary folder, so that the user's remains unchanged.
    let playground = try Playground()
    defer { playground.remove() }
    var measurer = Measurer(keys: .app)
    var first = BenchSeries("first")
    let record = BenchRecord(.measure)
    var stopwatch = Stopwatch()
    let measurement = try measure(&measurer)
    first.record(nanoseconds: stopwatch.lap())
    let names = measurement.durations.map { $0.id.description }.sorted()
    var later = BenchSeries("later", parts: names)
    var progress = BenchProgress("measurements", of: rounds)
    var knownCount = 0
    for round in 1..<rounds {
      let start = monotonicNanoseconds()
      let measurement = try measure(&measurer)
      let whole = monotonicNanoseconds() - start
      later.record(partNanoseconds: Self.parts(of: measurement.durations, in: whole, named: names))
      if measurement.isCodeKnown { knownCount += 1 }
      progress.step(round + 1)
    }
    report(
      first, later,
      record.members(count: rounds, measurement)
        + [("known", .integer(UInt64(knownCount))), ("trees", .bool(treeDigests))])
    if !output.json { Console.note("the code was known to be unchanged in \(knownCount) of the later measurements") }
    try picture.write {
      later.chart(
        title: "\(rounds - 1) measurements after the first one, which took \(milliseconds(first.total.max)) ms",
        budgetMilliseconds: budget.budgetMs
      ).svg
    }
  }

  private func measure(_ measurer: inout Measurer) throws(Failure) -> LiveMeasurement {
    let policy: MeasurementPolicy = treeDigests ? [.knownCode, .treeDigests] : .knownCode
    do throws(MeasurementError) { return try measurer.measure(under: policy, makingDeviceSecret: true) } catch {
      throw Failure(error)
    }
  }

  /// Returns the time of each component, in the order of `names`. `app.image` is measured at the same time as the others, and gets
  /// the rest of the whole.
  private static func parts(
    of durations: [LiveMeasurement.Duration], in whole: UInt64, named names: [String]
  ) -> [UInt64] {
    let image = "app.image"
    var parts = names.map { name in
      name == image ? 0 : durations.first(where: { $0.id.description == name })?.nanoseconds ?? 0
    }
    let others = parts.reduce(0, +)
    if let index = names.firstIndex(of: image), others < whole { parts[index] = whole - others }
    return parts
  }

  private func report(_ first: BenchSeries, _ later: BenchSeries, _ common: [(String, JSONValue)]) {
    let rows = [first.all[0]] + later.all
    guard output.json else {
      for line in BenchSeries.table(of: rows) { Console.result(line) }
      if Console.isResultTerminal { for line in later.total.bars { Console.result(line) } }
      return
    }
    Console.result(
      .object(
        common + [
          ("rounds", .integer(UInt64(rounds))), ("microseconds", .object(rows.map { ($0.name, $0.histogram.json) })),
        ]))
  }
}
