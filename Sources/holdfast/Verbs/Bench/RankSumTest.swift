import Glibc

/// A comparison of two samples by the ranks of their values, and of their medians. It assumes no distribution.
///
/// Source: Mann and Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than the Other", 1947,
/// in the normal approximation with a correction for continuity and for ties.
package struct RankSumTest: Equatable {
  /// The number of pairs in which the value of the first sample is greater, plus half of those in which both are equal.
  package let statistic: Double
  /// The probability of a statistic at least as far from the mean if both samples came from one distribution.
  package let probability: Double

  /// Values in ascending order, each with the number of times that it occurs.
  package typealias Sample = [(value: UInt64, count: UInt64)]

  /// Compares two samples, neither of which is empty.
  package init(_ first: Sample, _ second: Sample) {
    let (n1, n2) = (Self.count(first), Self.count(second))
    let n = n1 + n2
    // The second sample's values below the present one, and the correction for ties.
    var (below, greater, ties) = (0.0, 0.0, 0.0)
    var (i, j) = (0, 0)
    while i < first.count || j < second.count {
      let value = min(i < first.count ? first[i].value : .max, j < second.count ? second[j].value : .max)
      var (here, there) = (0.0, 0.0)
      if i < first.count, first[i].value == value {
        here = Double(first[i].count)
        i += 1
      }
      if j < second.count, second[j].value == value {
        there = Double(second[j].count)
        j += 1
      }
      greater += here * (below + there / 2)
      below += there
      let tied = here + there
      ties += tied * tied * tied - tied
    }
    statistic = greater
    let variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)))
    let distance = max(abs(greater - n1 * n2 / 2) - 0.5, 0)
    probability = variance > 0 ? min(erfc(distance / variance.squareRoot() / 2.0.squareRoot()), 1) : 1
  }

  private static func count(_ sample: Sample) -> Double { Double(sample.reduce(0) { $0 + $1.count }) }
}

/// The ratio of the medians of two samples, with an interval that contains it in at least 95 % of cases.
///
/// Source: the interval of each median is between two order statistics (Conover, "Practical Nonparametric Statistics", §3.2), at
/// 97.5 %; that of the ratio contains both (Bonferroni).
package struct MedianRatio: Equatable {
  /// The second median divided by the first; a median of 0 counts as 1.
  package let ratio: Double
  /// The ends of the interval.
  package let low: Double, high: Double

  /// Compares two samples, neither of which is empty.
  package init(_ first: RankSumTest.Sample, _ second: RankSumTest.Sample) {
    let (before, after) = (Self.medians(of: first), Self.medians(of: second))
    ratio = after.middle / before.middle
    low = after.low / before.high
    high = after.high / before.low
  }

  private static func medians(of sample: RankSumTest.Sample) -> (low: Double, middle: Double, high: Double) {
    let count = sample.reduce(UInt64(0)) { $0 + $1.count }
    let half = 2.2414 * Double(count).squareRoot() / 2
    func value(_ rank: Double) -> Double {
      let rank = UInt64(min(max(rank, 1), Double(count)))
      var seen: UInt64 = 0
      for (value, count) in sample {
        seen += count
        if seen >= rank { return Double(max(value, 1)) }
      }
      return 1
    }
    let middle = Double(count) / 2
    return (value((middle - half).rounded(.down)), value(middle.rounded(.up)), value((middle + half + 1).rounded(.up)))
  }
}
