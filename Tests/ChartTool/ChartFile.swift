import Glibc
import HoldfastCharts
import HoldfastFormats

/// A file that describes a chart, in one of two forms:
///
///     {"kind": "curves", "title": …, "x": {"label": …, "log": true|false}, "y": {"label": …, "log": …},
///      "series": [{"name": …, "points": [[x, y], …]}, …]}
///     {"kind": "bars", "title": …, "unit": …, "log": …,
///      "bars": [{"name": …, "value": v, "low": l, "high": h, "limit": m or null}, …]}
///
/// A number that is not an integer may also be in quotation marks.
enum ChartFile {
  /// The longest file.
  static let byteLimit = 4 << 20

  /// Returns the picture of the chart that a file describes; throws for any other file.
  static func svg(of bytes: [UInt8]) throws(JSONMistake) -> String {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: byteLimit, otherNumbers: .asText)
    } catch { throw JSONMistake(in: bytes, byteLimit: byteLimit) ?? JSONMistake(at: [], expected: .syntax) }
    let chart = JSONMember(value)
    let kind = try chart.required("kind")
    return switch kind.value.text {
    case "curves": try curves(chart).svg
    case "bars": try bars(chart).svg
    default: throw kind.mistake(.text(of: ["curves", "bars"]))
    }
  }

  private static func curves(_ chart: JSONMember) throws(JSONMistake) -> CurveChart {
    try chart.checkMembers(["kind", "title", "x", "y", "series"])
    var series: [CurveChart.Series] = []
    for one in try chart.required("series").elements() {
      try one.checkMembers(["name", "points"])
      var points: [(x: Double, y: Double)] = []
      for point in try one.required("points").elements() {
        let pair = try point.elements(count: 2)
        points.append((try number(pair[0]), try number(pair[1])))
      }
      series.append(.init(name: try label(one, "name"), points: points))
    }
    return CurveChart(
      title: try label(chart, "title"), x: try axis(chart, "x"), y: try axis(chart, "y"), series: series)
  }

  private static func axis(_ chart: JSONMember, _ name: String) throws(JSONMistake) -> CurveChart.Axis {
    let axis = try chart.required(name)
    try axis.checkMembers(["label", "log"])
    return .init(label: try label(axis, "label"), isLogarithmic: try axis.required("log").flag())
  }

  private static func bars(_ chart: JSONMember) throws(JSONMistake) -> BarChart {
    try chart.checkMembers(["kind", "title", "unit", "log", "bars"])
    var bars: [BarChart.Bar] = []
    for bar in try chart.required("bars").elements() {
      try bar.checkMembers(["name", "value", "low", "high", "limit"])
      let limit = try bar.required("limit")
      bars.append(
        .init(
          name: try label(bar, "name"), value: try number(bar.required("value")), low: try number(bar.required("low")),
          high: try number(bar.required("high")), limit: limit.value == .null ? nil : try number(limit)))
    }
    return BarChart(
      title: try label(chart, "title"), unit: try chart.required("unit").text(byteCounts: 0...32),
      isLogarithmic: try chart.required("log").flag(), bars: bars)
  }

  private static func label(_ member: JSONMember, _ name: String) throws(JSONMistake) -> String {
    try member.required(name).text(byteCounts: 1...200)
  }

  /// Returns a number, which the parser keeps as its characters unless it is an integer.
  private static func number(_ member: JSONMember) throws(JSONMistake) -> Double {
    if let integer = member.value.number { return Double(integer) }
    guard let text = member.value.text, let number = Double(text), number.isFinite else {
      throw member.mistake(.form("a number"))
    }
    return number
  }
}
