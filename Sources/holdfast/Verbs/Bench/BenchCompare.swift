import ArgumentParser
import HoldfastCharts
import HoldfastFormats

/// The comparison of two results of the same benchmark.
struct BenchCompare: Verb {
  static let configuration = CommandConfiguration(
    commandName: "compare", abstract: "Compare two results of a benchmark: what became slower.",
    discussion: """
      Each file is what latency, rounds, measure, board or otp printed with --json. Times are slower or faster if their ranks \
      differ with p < 0.01 in a Mann-Whitney U test. The ratio is that of the medians, with an interval of 95 %. The parts of \
      rounds, and the instructions of a board, are compared if both files have them.
      """,
    examples: [
      "holdfast bench compare before.json after.json"
    ])

  @Argument(help: "The result before a change, or - for standard input.", completion: .file())
  var before: String

  @Argument(help: "The result after it, or - for standard input.", completion: .file())
  var after: String

  @OptionGroup var output: OutputOptions

  mutating func perform() throws(Failure) {
    guard before != "-" || after != "-" else { throw Failure(.usage, "only one of the results can be standard input") }
    let (old, new) = (try BenchFile(before), try BenchFile(after))
    guard old.benchmark == new.benchmark, old.series.map(\.name) == new.series.map(\.name) else {
      throw Failure(
        .malformed, "the files are of different benchmarks: \(old.benchmark.rawValue) and \(new.benchmark.rawValue)",
        hint: "compare two results of the same command")
    }
    if old.host != new.host { Console.warning("the results come from different hosts") }
    let comparisons = (zip(old.series, new.series) + old.details(in: new)).map {
      Comparison($0.name, $0.sample, $1.sample)
    }
    if output.json {
      Console.result(
        .object([
          ("benchmark", .string(old.benchmark.rawValue)),
          ("versions", .array([.string(old.version), .string(new.version)])),
          ("slower", .bool(comparisons.contains { $0.verdict == .slower })),
          ("series", .array(comparisons.map(\.json))),
        ]))
    } else {
      let width = comparisons.map(\.name.count).max() ?? 0
      for comparison in comparisons { Console.result(comparison.text(width: width)) }
    }
  }
}

/// The comparison of one series of times.
private struct Comparison {
  let name: String
  private let test: RankSumTest
  private let ratio: MedianRatio

  enum Verdict: String {
    case slower
    case faster
    case unchanged
  }

  init(_ name: String, _ before: RankSumTest.Sample, _ after: RankSumTest.Sample) {
    (self.name, test, ratio) = (name, RankSumTest(after, before), MedianRatio(before, after))
    isHigher = test.statistic > Self.pairs(before, after) / 2
  }

  /// Whether the times after the change are the longer ones.
  private let isHigher: Bool

  private static func pairs(_ first: RankSumTest.Sample, _ second: RankSumTest.Sample) -> Double {
    Double(first.reduce(0) { $0 + $1.count }) * Double(second.reduce(0) { $0 + $1.count })
  }

  var verdict: Verdict {
    test.probability >= 0.01 ? .unchanged : isHigher ? .slower : .faster
  }

  func text(width: Int) -> String {
    let words = verdict == .unchanged ? "no significant difference" : verdict.rawValue
    let p = test.probability < 0.0001 ? "p < 0.0001" : "p = \(NumberText.of(test.probability))"
    return "\(name.padded(width))  \(NumberText.of(ratio.ratio)) times (\(NumberText.of(ratio.low)) to "
      + "\(NumberText.of(ratio.high))), \(p): \(words)"
  }

  /// The comparison with ratios in thousandths and the probability in millionths, since JSON here has integers only.
  var json: JSONValue {
    func scaled(_ value: Double, _ factor: Double) -> JSONValue {
      .integer(UInt64(min((value * factor).rounded(), 9e15)))
    }
    return .object([
      ("name", .string(name)), ("verdict", .string(verdict.rawValue)),
      ("ratio_thousandths", scaled(ratio.ratio, 1000)), ("low_thousandths", scaled(ratio.low, 1000)),
      ("high_thousandths", scaled(ratio.high, 1000)), ("p_millionths", scaled(test.probability, 1_000_000)),
    ])
  }
}

/// A result of a benchmark in a file.
private struct BenchFile {
  let benchmark: Benchmark
  let version: String
  let host: JSONValue
  let series: [Series]
  /// The parts of rounds, and the instructions of a board, as far as there are any.
  private let details: [Series]

  typealias Series = (name: String, sample: RankSumTest.Sample)

  private static let byteLimit = 16 << 20

  init(_ path: String) throws(Failure) {
    let bytes = try Input.read(path, limit: Self.byteLimit)
    do throws(JSONMistake) {
      let value: JSONValue
      do throws(JSONFault) { value = try JSONValue(parsing: bytes, byteLimit: Self.byteLimit) } catch {
        throw JSONMistake(in: bytes, byteLimit: Self.byteLimit) ?? JSONMistake(at: [], expected: .syntax)
      }
      let result = JSONMember(value)
      let name = try result.required("benchmark")
      guard let benchmark = name.value.text.flatMap(Benchmark.init) else {
        throw name.mistake(.text(of: Benchmark.allCases.map(\.rawValue)))
      }
      self.benchmark = benchmark
      _ = try result.required("format").integer(BenchRecord.format...BenchRecord.format)
      version = try result.required("version").text(byteCounts: 1...256)
      host = try result.required("host").value
      let times = try result.required("microseconds")
      // A benchmark of one series has its members here.
      series =
        if times.member("histogram") != nil { [("total", try Self.sample(times))] } else { try Self.all(in: times) }
      guard !series.isEmpty else { throw times.mistake(.form("the times of at least one series")) }
      var details: [Series] = []
      if let parts = result.member("parts") { details += try Self.all(in: parts) }
      if let instructions = result.member("instructions") {
        details += try Self.all(in: instructions).map { ("\($0.name): instructions", $0.sample) }
      }
      self.details = details
    } catch { throw Failure(.malformed, error.located(in: bytes).text(in: path)) }
  }

  /// The details that both files have, in the order of this one.
  func details(in other: BenchFile) -> [(Series, Series)] {
    details.compactMap { ours in other.details.first { $0.name == ours.name }.map { (ours, $0) } }
  }

  private static func all(in member: JSONMember) throws(JSONMistake) -> [Series] {
    var series: [Series] = []
    for (name, one) in try member.members(atMost: 64) { series.append((name, try sample(one))) }
    return series
  }

  private static func sample(_ member: JSONMember) throws(JSONMistake) -> RankSumTest.Sample {
    let histogram = try member.required("histogram")
    var sample: RankSumTest.Sample = []
    for pair in try histogram.elements() {
      let numbers = try pair.elements(count: 2)
      let (value, count) = (try numbers[0].integer(), try numbers[1].integer(1...0xffff_ffff))
      guard sample.last.map({ $0.value < value }) ?? true else {
        throw numbers[0].mistake(.form("greater than the value before"))
      }
      sample.append((value, count))
    }
    guard !sample.isEmpty else { throw histogram.mistake(.form("at least one value with its count")) }
    return sample
  }
}
