/// The number of times that each value occurred.
package struct Occurrences {
  private var counts: [Int: Int] = [:]

  /// Creates no values.
  package init() {}

  /// Adds a value.
  package mutating func add(_ value: Int) { counts[value, default: 0] += 1 }

  /// The figures of all values so far.
  package var figures: Figures {
    let count = counts.values.reduce(0, +)
    let total = counts.reduce(0) { $0 + $1.key * $1.value }
    return Figures(
      total: total, mean: count == 0 ? 0 : Double(total) / Double(count), p99: value(at: 0.99, of: count),
      most: counts.keys.max() ?? 0)
  }

  /// Returns the least value that at least this share of the values does not exceed.
  private func value(at share: Double, of count: Int) -> Int {
    var rest = share.leastCount(of: count)
    for (value, count) in counts.sorted(by: { $0.key < $1.key }) {
      rest -= count
      if rest <= 0 { return value }
    }
    return 0
  }
}

/// The figures of one quantity over many visits.
package struct Figures: Sendable, Equatable {
  /// The sum.
  package let total: Int
  /// The mean.
  package let mean: Double
  /// The 99th percentile.
  package let p99: Int
  /// The greatest value.
  package let most: Int
}

extension Double {
  /// Returns the least number of things that is at least this share of `count` things.
  package func leastCount(of count: Int) -> Int {
    // A product such as 0.99 × 100 may be a little above the integer.
    Int((self * Double(count) - 1e-9 * Double(count)).rounded(.up))
  }
}

/// The costs of bulletins at visits of one kind: bytes in both directions, and signatures that the device checks.
struct VisitOccurrences {
  private var count = 0
  private var bytes = Occurrences()
  private var checks = Occurrences()

  mutating func add(bytes: Int, checks: Int) {
    count += 1
    self.bytes.add(bytes)
    self.checks.add(checks)
  }

  /// The figures of all visits so far.
  var figures: VisitFigures { VisitFigures(count: count, bytes: bytes.figures, checks: checks.figures) }
}

/// The figures of visits of one kind.
package struct VisitFigures: Sendable, Equatable {
  /// The number of visits.
  package let count: Int
  /// The bytes that bulletins cost, with the part of M3 that tells the state of the list.
  package let bytes: Figures
  /// The signatures that the device checks.
  package let checks: Figures
}
