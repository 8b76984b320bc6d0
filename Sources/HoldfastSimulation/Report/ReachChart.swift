import HoldfastCharts

/// The picture of the share of devices that know of a revocation, over the time after it.
package struct ReachChart {
  private let report: SimulationReport

  /// Creates the picture of a report.
  package init(_ report: SimulationReport) { self.report = report }

  private static let left = 70.0
  private static let plotHeight = 260.0

  /// The picture in SVG.
  package var svg: String {
    var picture = Picture()
    let title =
      "Devices that know of a revocation: \(report.settings.deviceCount) devices, \(report.settings.proverCount) provers"
    let top = picture.paragraph(title, Picture.margin, 30, width: Picture.width - 2 * Picture.margin, "heading") + 6
    let plotTop = top + Double(marks.count) * Picture.lineHeight
    let bottom = plotTop + Self.plotHeight
    let right = Picture.width - 90
    let hours = Scale(covering: [0] + report.curve.map(\.hours), logarithmic: false, from: Self.left, to: right)
    let shares = Scale(covering: [0, 100], logarithmic: false, from: bottom, to: plotTop)
    for tick in shares.ticks {
      let y = shares.position(of: tick)
      picture.line(Self.left, y, right, y, "grid")
      picture.text(NumberText.of(tick, "%"), Self.left - 8, y + 4, .end, "quiet")
    }
    picture.line(Self.left, bottom, right, bottom, "axis")
    picture.ticks(of: hours, at: bottom, unit: "h")
    for (start, end) in zip(report.curve, report.curve.dropFirst()) {
      picture.line(
        hours.position(of: start.hours), shares.position(of: 100 * start.share), hours.position(of: end.hours),
        shares.position(of: 100 * end.share), "s0")
    }
    for (index, mark) in marks.enumerated() {
      let (x, y) = (hours.position(of: mark.hours), top + Double(index) * Picture.lineHeight)
      let isLeft = x + 6 + TextWidth.of(mark.text) > Picture.width - Picture.margin
      picture.mark(x, y - 8, x, bottom, "mark")
      picture.text(mark.text, isLeft ? x - 6 : x + 6, y, isLeft ? .end : .start)
    }
    return picture.svg(title: title, description: description, height: bottom + 2 * Picture.lineHeight + 8)
  }

  /// The times at which the shares were reached.
  private var marks: [(hours: Double, text: String)] {
    zip(["50 %", "99 %", "99.9 %"], report.all.seconds).compactMap { name, seconds in
      seconds.map { (Double($0) / 3600, "\(name) \(NumberText.of(Double($0) / 3600, "h"))") }
    }
  }

  private var description: String {
    "The share of devices that know of a revocation, over the hours after it. "
      + (marks.isEmpty ? "" : marks.map(\.text).joined(separator: ", ") + ". ")
      + "At the end, \(NumberText.of(100 * report.all.share, "%")) know."
  }
}
