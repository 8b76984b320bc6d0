import Glibc

/// A scale of an axis: from a range of values to a range of positions, with ticks at round values.
package struct Scale {
  private let isLogarithmic: Bool
  private let low: Double
  private let high: Double
  private let start: Double
  private let end: Double

  /// Creates a scale that covers all of `values` that it can show, from position `start` to position `end`.
  ///
  /// A linear scale of values that are not negative begins at 0 if `fromZero`. Without values, it runs from 0, or 1, to 10.
  package init(covering values: [Double], logarithmic: Bool, fromZero: Bool = false, from start: Double, to end: Double)
  {
    (isLogarithmic, self.start, self.end) = (logarithmic, start, end)
    let shown = values.filter { Self.shows($0, logarithmic: logarithmic) }
    var (low, high) = (shown.min() ?? (logarithmic ? 1 : 0), shown.max() ?? 10)
    if logarithmic {
      // Round to whole decades, so that every scale has two labels.
      (low, high) = (pow(10, log10(low).rounded(.down)), pow(10, log10(high).rounded(.up)))
      if low == high { high *= 10 }
    } else {
      if fromZero && low > 0 { low = 0 }
      if low == high { (low, high) = low == 0 ? (0, 1) : (min(low * 0.9, low * 1.1), max(low * 0.9, low * 1.1)) }
    }
    (self.low, self.high) = (low, high)
  }

  /// The greatest size of a value, so that differences and products remain finite.
  private static let limit = 1e30

  /// Whether a value has a position on a scale.
  package static func shows(_ value: Double, logarithmic: Bool) -> Bool {
    value.isFinite && abs(value) <= limit && (!logarithmic || value >= 1 / limit)
  }

  /// Whether a value has a position on this scale, inside its range.
  package func covers(_ value: Double) -> Bool {
    Self.shows(value, logarithmic: isLogarithmic) && low <= value && value <= high
  }

  /// Returns the position of a value, at the nearer end for one outside.
  package func position(of value: Double) -> Double {
    let value = min(max(value, low), high)
    let part = isLogarithmic ? log10(value / low) / log10(high / low) : (value - low) / (high - low)
    return start + part * (end - start)
  }

  /// Round values in the range, at most eleven, in their order.
  package var ticks: [Double] {
    if isLogarithmic {
      let (first, last) = (Int(log10(low).rounded()), Int(log10(high).rounded()))
      return stride(from: first, through: last, by: (last - first) / 9 + 1).map { pow(10, Double($0)) }
    }
    let rough = (high - low) / 6
    let power = pow(10, log10(rough).rounded(.down))
    let step = ([1, 2, 5].first { $0 * power >= rough * 0.999 } ?? 10) * power
    let (first, last) = ((low / step - 1e-9).rounded(.up), (high / step + 1e-9).rounded(.down))
    guard first <= last, last - first <= 20 else { return [low, high] }
    return stride(from: first, through: last, by: 1).map { $0 * step }
  }
}
