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
    let height = draw(in: &picture, at: 30, longestBar: longestBar)
    return picture.svg(title: title, description: description, height: height)
  }

  /// Returns one picture of several charts, one below the other, whose stacked bars have one scale.
  ///
  /// - Parameters:
  ///   - title: The name of the picture; each chart has its name as well.
  ///   - charts: The charts from top to bottom.
  package static func svg(title: String, _ charts: [DistributionChart]) -> String {
    var picture = Picture()
    var y = picture.paragraph(title, Picture.margin, 30, width: Picture.width - 2 * Picture.margin, "heading")
    let longest = charts.map(\.longestBar).max() ?? 0
    for chart in charts { y = chart.draw(in: &picture, at: y + 12, longestBar: longest) + Picture.lineHeight }
    let description = charts.map { "\($0.title): \($0.description)" }.joined(separator: " ")
    return picture.svg(title: title, description: description, height: y - Picture.lineHeight)
  }

  /// Draws the chart, whose title has its first base line at `y`, and returns the end of it. `longestBar` is the value whose stacked
  /// bar has the whole width.
  private func draw(in picture: inout Picture, at y: Double, longestBar: Double) -> Double {
    let width = Picture.width - 2 * Picture.margin
    let top = picture.paragraph(title, Picture.margin, y, width: width, "heading") + 6
    let marks = percentiles + (limit.map { [$0] } ?? [])
    let plotTop = top + Double(marks.count) * Picture.lineHeight
    let bottom = plotTop + Self.plotHeight
    let shown = range
    let scale = Scale(
      covering: shown, logarithmic: false, from: Self.left, to: Picture.width - Picture.margin - Self.outside)
    let placed = place(marks, on: scale, shown, from: top)
    // Behind the bars with an edge, and on them without, so that no bar disappears between marks.
    for mark in placed { picture.mark(mark.x, mark.y - 8, mark.x, bottom, mark.style) }
    drawBins(scale, in: &picture, from: plotTop, to: bottom)
    let end = scale.position(of: .greatestFiniteMagnitude)
    picture.line(Self.left, bottom, end, bottom, "axis")
    picture.ticks(of: scale, at: bottom, unit: unit)
    if let limit = placed.last, limit.x > end {
      // The axis is interrupted in front of the limit.
      for shift in [8.0, 14] { picture.line(end + shift, bottom + 5, end + shift + 6, bottom - 5, "axis") }
      picture.line(end + 24, bottom, limit.x + 16, bottom, "axis")
    }
    for mark in placed { draw(mark, in: &picture, to: bottom) }
    var y = bottom + 2 * Picture.lineHeight + 8
    if let beyond { y = picture.paragraph(beyond, Picture.margin, y, width: width, "quiet") }
    if !parts.isEmpty { y = drawParts(in: &picture, at: y + 8, longestBar: longestBar) }
    return y
  }

  /// The greater sum of the parts.
  private var longestBar: Double { max(total(\.median), total(\.high)) }

  /// The ends of the axis. A long tail is cut, so that the rest remains visible. Values that hardly differ have an axis that is wider than
  /// they are, so that ticks have different texts.
  private var range: [Double] {
    guard var low = values.map(\.value).min(), let high = values.map(\.value).max() else { return [] }
    let tail = percentiles.map(\.value).max() ?? high
    var end = tail > low && high > low + 3 * (tail - low) ? low + 1.2 * (tail - low) : high
    let lacking = 0.1 * max(abs(low), abs(end)) - (end - low)
    if lacking > 0 { (low, end) = (low - lacking / 2, end + lacking / 2) }
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

  /// A mark with the place of its vertical line, whose label has its base line at `y`.
  private struct PlacedMark {
    let text: String
    let style: String
    let x: Double
    let y: Double
  }

  /// Places the marks, of which the limit is the last one if there is a limit, in a separate row each. A limit far beyond the values is to
  /// the right of the axis.
  private func place(_ marks: [Mark], on scale: Scale, _ shown: [Double], from top: Double) -> [PlacedMark] {
    marks.enumerated().map { index, mark in
      let isLimit = index == percentiles.count
      let isBeyond = isLimit && !scale.covers(mark.value) && mark.value > (shown.last ?? 0)
      let x = isBeyond ? scale.position(of: .greatestFiniteMagnitude) + 40 : scale.position(of: mark.value)
      return PlacedMark(
        text: text(of: mark), style: isLimit ? "limit" : "mark", x: x, y: top + Double(index) * Picture.lineHeight)
    }
  }

  /// Draws the vertical line of a mark and its label.
  private func draw(_ mark: PlacedMark, in picture: inout Picture, to bottom: Double) {
    let isLeft = mark.x + 6 + TextWidth.of(mark.text) > Picture.width - Picture.margin
    picture.line(mark.x, mark.y - 8, mark.x, bottom, mark.style)
    picture.text(
      mark.text, isLeft ? mark.x - 6 : mark.x + 6, mark.y, isLeft ? .end : .start, mark.style == "limit" ? "limit" : "")
  }

  private func text(of mark: Mark) -> String { "\(mark.name) \(NumberText.of(mark.value, unit))" }

  /// Draws a stacked bar for the medians, one for the 99th percentiles, and the names with their values.
  private func drawParts(in picture: inout Picture, at top: Double, longestBar: Double) -> Double {
    let left = Self.left
    let room = Picture.width - Picture.margin - left
    var y = top
    for (name, value) in [("p50", \Part.median), ("p99", \Part.high)] {
      picture.text(name, Picture.margin, y + 13)
      var x = left
      for (index, part) in parts.enumerated() where longestBar > 0 {
        let width = max(part[keyPath: value], 0) / longestBar * room
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
