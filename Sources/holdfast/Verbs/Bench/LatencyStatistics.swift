import Glibc
import Histogram
import HoldfastFormats
import HoldfastLinux
import HoldfastProver

/// Microseconds, from one to an hour, to three digits.
typealias LatencyHistogram = Histogram<UInt32>

extension LatencyHistogram {
  init() { self.init(highestTrackableValue: 3_600_000_000, numberOfSignificantValueDigits: .three) }

  /// Microseconds at the usual percentiles.
  var json: JSONValue {
    .object([
      ("min", .integer(min)), ("p50", .integer(valueAtPercentile(50))), ("p90", .integer(valueAtPercentile(90))),
      ("p99", .integer(valueAtPercentile(99))), ("max", .integer(max)),
    ])
  }
}

/// The latencies of proofs, as a whole and in parts.
struct LatencyStatistics {
  private(set) var total = LatencyHistogram()
  private var measure = LatencyHistogram()
  private var connect = LatencyHistogram()
  private var round = LatencyHistogram()
  private var device = LatencyHistogram()

  mutating func record(_ timing: ProofTiming) {
    total.record(timing.total / 1000)
    measure.record(timing.measure / 1000)
    connect.record(timing.connect / 1000)
    round.record(timing.round / 1000)
    device.record(timing.device / 1000)
  }

  /// The whole, and where it went.
  var parts: [(name: String, histogram: LatencyHistogram)] {
    [("total", total), ("measure", measure), ("connect", connect), ("round", round), ("device", device)]
  }

  /// A table in milliseconds.
  var table: [String] {
    ["ms         p50       p90       p99       max"]
      + parts.map { name, histogram in
        name.padded(8)
          + [50, 90, 99, 100].map { milliseconds(histogram.valueAtPercentile($0)).paddedLeft(8) + "  " }.joined()
      }
  }

  /// The whole's distribution in up to twelve bars.
  var bars: [String] {
    let low = total.min
    let width = max((total.valueAtPercentile(99) - low) / 11, 1)
    var counts = [UInt64](repeating: 0, count: 12)
    for value in total.recordedValues() {
      counts[min(Int((max(value.value, low) - low) / width), 11)] += UInt64(value.count)
    }
    let most = max(counts.max() ?? 1, 1)
    return counts.enumerated().map { index, count in
      let start = milliseconds(low + UInt64(index) * width).paddedLeft(8)
      return "\(start)  \(String(repeating: "#", count: Int(count * 50 / most))) \(count)"
    }
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
