import HoldfastCharts

/// A chart of curves, such as costs that grow with the amount of data. Its axes are linear or logarithmic.
package struct CurveChart: Sendable {
  /// An axis: its label, which has the unit, and whether it is logarithmic.
  package struct Axis: Sendable {
    let label: String
    let isLogarithmic: Bool

    /// Creates an axis with a label.
    package init(label: String, isLogarithmic: Bool) {
      (self.label, self.isLogarithmic) = (label, isLogarithmic)
    }
  }

  /// A curve: its name and its points. An axis omits the points that it cannot show: what is not finite, and on a logarithmic
  /// axis what is not positive.
  package struct Series: Sendable {
    let name: String
    let points: [(x: Double, y: Double)]

    /// Creates a curve through points, in their order.
    package init(name: String, points: [(x: Double, y: Double)]) {
      (self.name, self.points) = (name, points)
    }
  }

  private let title: String
  private let x: Axis
  private let y: Axis
  private let series: [Series]

  /// Creates a chart of any number of curves.
  package init(title: String, x: Axis, y: Axis, series: [Series]) {
    (self.title, self.x, self.y) = (title, x, y)
    self.series = series.map { one in
      Series(
        name: one.name,
        points: one.points.filter {
          Scale.shows($0.x, logarithmic: x.isLogarithmic) && Scale.shows($0.y, logarithmic: y.isLogarithmic)
        })
    }
  }

  /// The picture in SVG.
  package var svg: String {
    var picture = Picture()
    let right = Picture.width - 2 * Picture.margin
    var top = picture.paragraph(
      title, Picture.margin, 30, width: Picture.width - 2 * Picture.margin, "heading")
    top = drawLegend(in: &picture, at: top + 4)
    top = picture.paragraph(y.label, Picture.margin, top, width: Picture.width - 2 * Picture.margin, "quiet")
    let bottom = top + 320
    let points = series.flatMap(\.points)
    let vertical = Scale(
      covering: points.map(\.y), logarithmic: y.isLogarithmic, fromZero: true, from: bottom, to: top)
    let left = Picture.margin + 8 + (vertical.ticks.map { TextWidth.of(NumberText.of($0)) }.max() ?? 0)
    let horizontal = Scale(
      covering: points.map(\.x), logarithmic: x.isLogarithmic, fromZero: true, from: left, to: right)
    for tick in vertical.ticks {
      let y = vertical.position(of: tick)
      picture.line(left, y, right, y, "grid")
      picture.text(NumberText.of(tick), left - 8, y + 4, .end, "quiet")
    }
    picture.ticks(of: horizontal, at: bottom)
    picture.line(left, bottom, right, bottom, "axis")
    picture.line(left, top, left, bottom, "axis")
    for (index, one) in series.enumerated() {
      picture.curve(
        one.points.map { (horizontal.position(of: $0.x), vertical.position(of: $0.y)) }, Picture.series(index))
    }
    let end = picture.paragraph(
      x.label, left, bottom + 2 * Picture.lineHeight + 4, width: Picture.width - Picture.margin - left, "quiet")
    return picture.svg(title: title, description: description, height: end)
  }

  /// Draws the names of the curves in rows, and returns the base line that follows.
  private func drawLegend(in picture: inout Picture, at top: Double) -> Double {
    var (x, y) = (Picture.margin, top)
    let room = Picture.width - 2 * Picture.margin - 34
    for (index, one) in series.enumerated() {
      let lines = TextWidth.lines(of: one.name, width: room)
      let width = 34 + (lines.map { TextWidth.of($0) }.max() ?? 0)
      if x > Picture.margin && (x + width > Picture.width - Picture.margin || lines.count > 1) {
        (x, y) = (Picture.margin, y + Picture.lineHeight)
      }
      picture.curve([(x, y - 5), (x + 26, y - 5)], Picture.series(index))
      let next = picture.paragraph(one.name, x + 34, y, width: room)
      y = next - Picture.lineHeight
      x += width + 20
    }
    return series.isEmpty ? y : y + Picture.lineHeight + 6
  }

  private var description: String {
    guard !series.isEmpty else { return "There are no curves." }
    return "\(y.label) by \(x.label). "
      + series.map { one in
        guard let first = one.points.first, let last = one.points.last else { return "\(one.name): no points." }
        return "\(one.name): from \(NumberText.of(first.y)) at \(NumberText.of(first.x)) to \(NumberText.of(last.y)) "
          + "at \(NumberText.of(last.x))."
      }.joined(separator: " ")
  }
}
