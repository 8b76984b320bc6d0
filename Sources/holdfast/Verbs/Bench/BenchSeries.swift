import Histogram
import HoldfastCharts
import HoldfastFormats

/// Microseconds, from one to an hour, to three digits.
typealias LatencyHistogram = Histogram<UInt32>

extension LatencyHistogram {
  init() { self.init(highestTrackableValue: 3_600_000_000, numberOfSignificantValueDigits: .three) }

  /// The usual percentiles, by the names of text and pictures.
  static let percentiles: [(name: String, percent: Double)] = [("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9)]

  /// The usual percentiles, and each value with the number of times that it occurred.
  var json: JSONValue {
    .object(
      [("min", .integer(min))]
        + Self.percentiles.map { name, percent in
          (name == "p99.9" ? "p99_9" : name, .integer(valueAtPercentile(percent)))
        }
        + [
          ("max", .integer(max)),
          ("histogram", .array(recordedValues().map { .array([.integer($0.value), .integer(UInt64($0.count))]) })),
        ])
  }

  /// The distribution in up to twelve bars, with milliseconds in front.
  var bars: [String] {
    let low = min
    let width = Swift.max((valueAtPercentile(99) - low) / 11, 1)
    var counts = [UInt64](repeating: 0, count: 12)
    for value in recordedValues() {
      counts[Swift.min(Int((Swift.max(value.value, low) - low) / width), 11)] += UInt64(value.count)
    }
    let most = Swift.max(counts.max() ?? 1, 1)
    return counts.enumerated().map { index, count in
      let start = milliseconds(low + UInt64(index) * width).paddedLeft(8)
      return "\(start)  \(String(repeating: "#", count: Int(count * 50 / most))) \(count)"
    }
  }
}

/// A named series of times in microseconds, and the parts that each of them consists of.
struct BenchSeries {
  let name: String
  private(set) var total = LatencyHistogram()
  private(set) var parts: [(name: String, histogram: LatencyHistogram)]

  init(_ name: String, parts: [String] = []) {
    (self.name, self.parts) = (name, parts.map { ($0, LatencyHistogram()) })
  }

  /// Records a time.
  mutating func record(nanoseconds: UInt64) { total.record(nanoseconds / 1000) }

  /// Records a time as the sum of its parts, in their order.
  mutating func record(partNanoseconds: [UInt64]) {
    record(nanoseconds: partNanoseconds.reduce(0, +))
    for (index, nanoseconds) in partNanoseconds.enumerated() { parts[index].histogram.record(nanoseconds / 1000) }
  }

  /// The whole, and where it went.
  var all: [(name: String, histogram: LatencyHistogram)] { [(name, total)] + parts }

  /// The percentiles in milliseconds, as a table.
  static func table(of rows: [(name: String, histogram: LatencyHistogram)]) -> [String] {
    let width = max(rows.map(\.name.count).max() ?? 0, 8)
    let columns = LatencyHistogram.percentiles + [("max", 100)]
    return ["ms".padded(width) + columns.map { $0.name.paddedLeft(8) + "  " }.joined()]
      + rows.map { name, histogram in
        name.padded(width)
          + columns.map { milliseconds(histogram.valueAtPercentile($0.percent)).paddedLeft(8) + "  " }.joined()
      }
  }

  /// Returns the picture of the distribution with a budget.
  func chart(title: String, budgetMilliseconds: Int) -> DistributionChart {
    func value(_ histogram: LatencyHistogram, _ percent: Double) -> Double {
      Double(histogram.valueAtPercentile(percent)) / 1000
    }
    return DistributionChart(
      title: title, unit: "ms", values: total.recordedValues().map { (Double($0.value) / 1000, UInt64($0.count)) },
      percentiles: LatencyHistogram.percentiles.map { .init(name: $0.name, value: value(total, $0.percent)) },
      limit: .init(name: "budget", value: Double(budgetMilliseconds)),
      parts: parts.map { .init(name: $0.name, median: value($0.histogram, 50), high: value($0.histogram, 99)) })
  }
}

/// Microseconds as milliseconds with two decimals.
func milliseconds(_ microseconds: UInt64) -> String {
  let hundredths = (microseconds + 5) / 10
  let fraction = hundredths % 100
  return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction)"
}

extension String {
  func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(width - count, 0)) }
  func paddedLeft(_ width: Int) -> String { String(repeating: " ", count: max(width - count, 0)) + self }
}
