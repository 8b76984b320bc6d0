import Glibc

/// A chart of how often values occurred: bars, marks at percentiles, a limit, and perhaps the parts of which the values consist.
package struct DistributionChart: Sendable {
  /// A mark on the axis: a percentile or the limit.
  package struct Mark: Sendable {
    let name: String
    let value: Double

    /// Creates a mark.
    package init(name: String, value: Double) { (self.name, self.value) = (name, value) }
  }

  /// A part of the values, such as a step of a proof, at the 50th and the 99th percentile.
  package struct Part: Sendable {
    let name: String
    let median: Double
    let high: Double

    /// Creates a part.
    package init(name: String, median: Double, high: Double) {
      (self.name, self.median, self.high) = (name, median, high)
    }
  }

  private let title: String
  private let unit: String
  private let values: [(value: Double, count: UInt64)]
  private let percentiles: [Mark]
  private let limit: Mark?
  private let parts: [Part]

  /// Creates a chart.
  ///
  /// - Parameters:
  ///   - title: The name of the picture.
  ///   - unit: The unit of all values.
  ///   - values: The values and how often each occurred. Values that are not finite are omitted.
  ///   - percentiles: The marks, from the lowest to the highest.
  ///   - limit: The line that values should not pass; nil for none.
  ///   - parts: The parts of the values in the order in which they follow one another; none if they have no parts.
  package init(
    title: String, unit: String, values: [(value: Double, count: UInt64)], percentiles: [Mark], limit: Mark?,
    parts: [Part]
  ) {
    (self.title, self.unit, self.limit, self.parts) = (title, unit, limit, parts)
    self.values = values.filter { Scale.shows($0.value, logarithmic: false) && $0.count > 0 }
    self.percentiles = percentiles.filter { Scale.shows($0.value, logarithmic: false) }
  }

  private static let left = 70.0
  private static let plotHeight = 200.0
  private static let binCount = 60
  /// The room to the right of the axis for a limit that lies far beyond the values.
  private static let outside = 110.0

  /// The picture in SVG.
  package var svg: String {
    var picture = Picture()
    let width = Picture.width - 2 * Picture.margin
    let top = picture.paragraph(title, Picture.margin, 30, width: width, "heading") + 6
    let marks = percentiles + (limit.map { [$0] } ?? [])
    let plotTop = top + Double(marks.count) * Picture.lineHeight
    let bottom = plotTop + Self.plotHeight
    let shown = range
    let scale = Scale(
      covering: shown, logarithmic: false, from: Self.left, to: Picture.width - Picture.margin - Self.outside)
    drawBins(scale, in: &picture, from: plotTop, to: bottom)
    picture.line(Self.left, bottom, scale.position(of: .greatestFiniteMagnitude), bottom, "axis")
    picture.ticks(of: scale, at: bottom, unit: unit)
    for (index, mark) in percentiles.enumerated() {
      draw(
        mark, "mark", at: scale.position(of: mark.value), in: &picture, top + Double(index) * Picture.lineHeight, bottom
      )
    }
    if let limit {
      let end = scale.position(of: .greatestFiniteMagnitude)
      var x = scale.position(of: limit.value)
      if !scale.covers(limit.value) && limit.value > (shown.last ?? 0) {
        // The axis is interrupted in front of the limit.
        x = end + 40
        for shift in [8.0, 14] { picture.line(end + shift, bottom + 5, end + shift + 6, bottom - 5, "axis") }
        picture.line(end + 24, bottom, x + 16, bottom, "axis")
      }
      draw(limit, "limit", at: x, in: &picture, top + Double(percentiles.count) * Picture.lineHeight, bottom)
    }
    var y = bottom + 2 * Picture.lineHeight + 8
    if let beyond { y = picture.paragraph(beyond, Picture.margin, y, width: width, "quiet") }
    if !parts.isEmpty { y = drawParts(in: &picture, at: y + 8) }
    return picture.svg(title: title, description: description, height: y)
  }

  /// The lowest value, and the highest that the axis shows. A long tail is cut, so that the rest remains visible.
  private var range: [Double] {
    guard let low = values.map(\.value).min(), let high = values.map(\.value).max() else { return [] }
    let tail = percentiles.map(\.value).max() ?? high
    let end = tail > low && high > low + 3 * (tail - low) ? low + 1.2 * (tail - low) : high
    guard let limit, limit.value > end, limit.value <= end + (end - low) else { return [low, end] }
    return [low, limit.value]
  }

  /// The sentence on values to the right of the axis; nil if there are none.
  private var beyond: String? {
    guard let end = range.last, let most = values.map(\.value).max(), most > end else { return nil }
    let count = values.reduce(UInt64(0)) { $0 + ($1.value > end ? $1.count : 0) }
    return "\(count == 1 ? "One value lies" : "\(count) values lie") above \(NumberText.of(end, unit)), "
      + "at most at \(NumberText.of(most, unit)); the last bar has them too."
  }

  private func drawBins(_ scale: Scale, in picture: inout Picture, from top: Double, to bottom: Double) {
    let start = Self.left
    let width = (scale.position(of: .greatestFiniteMagnitude) - start) / Double(Self.binCount)
    var counts = [UInt64](repeating: 0, count: Self.binCount)
    for (value, count) in values {
      counts[min(Int((scale.position(of: value) - start) / width), Self.binCount - 1)] += count
    }
    let most = counts.max() ?? 0
    let heights = Scale(covering: [0, Double(max(most, 1))], logarithmic: false, from: bottom, to: top)
    for tick in heights.ticks where tick.rounded() == tick {
      let y = heights.position(of: tick)
      picture.line(start, y, start + width * Double(Self.binCount), y, "grid")
      picture.text(NumberText.of(tick), start - 8, y + 4, .end, "quiet")
    }
    for (index, count) in counts.enumerated() where count > 0 {
      let y = heights.position(of: Double(count))
      picture.rectangle(start + Double(index) * width + 0.5, y, width: width - 1, height: bottom - y, "s0")
    }
  }

  /// Draws a vertical line with its name and value, in a separate row for each.
  private func draw(
    _ mark: Mark, _ style: String, at x: Double, in picture: inout Picture, _ y: Double, _ bottom: Double
  ) {
    let label = text(of: mark)
    picture.mark(x, y - 8, x, bottom, style)
    let isLeft = x + 6 + TextWidth.of(label) > Picture.width - Picture.margin
    picture.text(label, isLeft ? x - 6 : x + 6, y, isLeft ? .end : .start, style == "limit" ? style : "")
  }

  private func text(of mark: Mark) -> String { "\(mark.name) \(NumberText.of(mark.value, unit))" }

  /// Draws a stacked bar for the medians, one for the 99th percentiles, and the names with their values.
  private func drawParts(in picture: inout Picture, at top: Double) -> Double {
    let sums = [total(\.median), total(\.high)]
    let left = Self.left
    let room = Picture.width - Picture.margin - left
    var y = top
    for (name, value, sum) in [("p50", \Part.median, sums[0]), ("p99", \Part.high, sums[1])] {
      picture.text(name, Picture.margin, y + 13)
      var x = left
      for (index, part) in parts.enumerated() where sum > 0 {
        let width = max(part[keyPath: value], 0) / max(sums[0], sums[1]) * room
        picture.rectangle(x, y, width: width, height: 18, Picture.series(index))
        x += width
      }
      y += 26
    }
    y += 10
    let columns = [330.0, 430.0]
    picture.text("each part at its own percentile", left + 20, y, .start, "quiet")
    for (column, name) in zip(columns, ["p50", "p99"]) { picture.text(name, left + column, y, .end, "quiet") }
    y += Picture.lineHeight
    for (index, part) in parts.enumerated() {
      picture.rectangle(left, y - 11, width: 12, height: 12, Picture.series(index))
      let next = picture.paragraph(part.name, left + 20, y, width: columns[0] - 120)
      for (column, value) in zip(columns, [part.median, part.high]) {
        picture.text(NumberText.of(value, unit), left + column, y, .end)
      }
      y = next
    }
    return y
  }

  private func total(_ value: KeyPath<Part, Double>) -> Double {
    parts.reduce(0) { $0 + max($1[keyPath: value], 0) }
  }

  private var description: String {
    let count = values.reduce(UInt64(0)) { $0 + $1.count }
    guard let low = values.map(\.value).min(), let high = values.map(\.value).max() else {
      return "There are no values."
    }
    return "\(count) values from \(NumberText.of(low, unit)) to \(NumberText.of(high, unit)). "
      + (percentiles + (limit.map { [$0] } ?? [])).map { text(of: $0) }.joined(separator: ", ") + ". "
      + parts.map { part in
        "\(part.name): \(NumberText.of(part.median, unit)) at p50, \(NumberText.of(part.high, unit)) at p99."
      }.joined(separator: " ")
  }
}
