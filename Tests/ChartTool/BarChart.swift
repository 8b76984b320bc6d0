import HoldfastCharts

/// A chart of values as horizontal bars, each with its spread and perhaps a limit.
package struct BarChart: Sendable {
  /// A value with its spread, and its limit unless there is none.
  package struct Bar: Sendable {
    let name: String
    let value: Double
    let low: Double
    let high: Double
    let limit: Double?

    /// Creates a bar. `low` and `high` are the ends of the spread.
    package init(name: String, value: Double, low: Double, high: Double, limit: Double?) {
      (self.name, self.value, self.low, self.high, self.limit) = (name, value, low, high, limit)
    }
  }

  private let title: String
  private let unit: String
  private let isLogarithmic: Bool
  private let bars: [Bar]

  /// Creates a chart of bars in their order; `unit` may be empty. Bars begin at 0; those of a logarithmic scale, which are ratios, begin
  /// at 1, and one that is not positive is omitted there.
  package init(title: String, unit: String, isLogarithmic: Bool = false, bars: [Bar]) {
    (self.title, self.unit, self.isLogarithmic, self.bars) = (title, unit, isLogarithmic, bars)
  }

  private static let nameWidth = 230.0
  private static let barHeight = 16.0

  /// The picture in SVG.
  package var svg: String {
    var picture = Picture()
    let width = Picture.width - 2 * Picture.margin
    var y = picture.paragraph(title, Picture.margin, 30, width: width, "heading")
    if !unit.isEmpty { y = picture.paragraph(unit, Picture.margin, y, width: width, "quiet") }
    if bars.contains(where: { $0.limit != nil }) { y = drawLegend(in: &picture, at: y) }
    let left = Picture.margin + Self.nameWidth + 12
    let figures = bars.map { TextWidth.of(figure(of: $0)) }.max() ?? 0
    let right = max(Picture.width - Picture.margin - figures - 12, left + 120)
    let scale = Scale(
      covering: bars.flatMap { [$0.value, $0.low, $0.high, $0.limit ?? $0.value] } + [base],
      logarithmic: isLogarithmic, from: left, to: right)
    for bar in bars { y = draw(bar, scale, in: &picture, at: y + 6, figureAt: right + 12) }
    picture.line(left, y + 6, right, y + 6, "axis")
    picture.ticks(of: scale, at: y + 6)
    return picture.svg(title: title, description: description, height: y + 6 + 2 * Picture.lineHeight)
  }

  /// The value at which bars begin.
  private var base: Double { isLogarithmic ? 1 : 0 }

  private func drawLegend(in picture: inout Picture, at y: Double) -> Double {
    picture.mark(Picture.margin + 4, y - 12, Picture.margin + 4, y + 2, "limit")
    picture.text("limit", Picture.margin + 14, y, .start, "quiet")
    return y + Picture.lineHeight
  }

  /// Draws a bar and its name in a row that begins at `top`, and returns where the next one begins.
  private func draw(_ bar: Bar, _ scale: Scale, in picture: inout Picture, at top: Double, figureAt x: Double) -> Double
  {
    let next = picture.paragraph(bar.name, Picture.margin, top + 13, width: Self.nameWidth) - 13
    let value = Scale.shows(bar.value, logarithmic: isLogarithmic) ? bar.value : base
    let (start, end) = (scale.position(of: base), scale.position(of: value))
    // Under the marks, so that a limit there is visible.
    picture.line(start, top - 6, start, max(next, top + Self.barHeight), "axis")
    picture.rectangle(min(start, end), top, width: abs(end - start), height: Self.barHeight, "s0")
    let middle = top + Self.barHeight / 2
    if Scale.shows(bar.low, logarithmic: isLogarithmic), Scale.shows(bar.high, logarithmic: isLogarithmic),
      bar.low < bar.high
    {
      let (low, high) = (scale.position(of: bar.low), scale.position(of: bar.high))
      picture.mark(low, middle, high, middle, "mark")
      for x in [low, high] { picture.mark(x, middle - 4, x, middle + 4, "mark") }
    }
    if let limit = bar.limit, Scale.shows(limit, logarithmic: isLogarithmic) {
      let x = scale.position(of: limit)
      picture.mark(x, top - 3, x, top + Self.barHeight + 3, "limit")
    }
    let below = picture.paragraph(figure(of: bar), x, top + 13, width: Picture.width - Picture.margin - x) - 13
    return max(next, below, top + Self.barHeight)
  }

  private func figure(of bar: Bar) -> String {
    NumberText.of(bar.value) + (bar.low < bar.high ? " (\(NumberText.of(bar.low))–\(NumberText.of(bar.high)))" : "")
      + (bar.limit.map { ", limit \(NumberText.of($0))" } ?? "")
  }

  private var description: String {
    guard !bars.isEmpty else { return "There are no values." }
    let unit = unit.isEmpty ? "" : " in \(unit)"
    return "Values\(unit), with their spread: " + bars.map { "\($0.name): \(figure(of: $0))" }.joined(separator: "; ")
      + "."
  }
}
