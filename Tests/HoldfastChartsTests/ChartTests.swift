import HoldfastAuthenticator
import HoldfastCharts
import Testing

import bench_charts

/// The pictures as documents: well-formed, with names, without numbers that are none, for any data.
struct ChartTests {
  private static let extremes: [[Double]] = [
    [], [0], [5], [7, 7, 7], [-3, 4], [1e-300, 1e300], [.nan, 1, .infinity], [1e29, 2e29], [0.000_01, 12_345_678],
    [-1e30, 1e30],
    [-5, -5],
  ]

  /// Parses a picture, and checks what is true of every one.
  private func check(_ svg: String, title: String) throws {
    let root = try XMLDocument.parse(Array(svg.utf8).span)
    #expect(root.name == "svg" && root.attributes["role"] == "img")
    #expect(root.children.prefix(2).map(\.name) == ["title", "desc"])
    #expect(svg.contains("<title>\(title)</title>"))
    for element in root.children {
      for name in ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height"] {
        guard let text = element.attributes[name], text != "100%" else { continue }
        let value = try #require(Double(text), "\(name)=\(text)")
        let range = name.hasSuffix("y") || name.hasPrefix("y") || name == "height" ? -1...20_000 : -1...761.0
        #expect(range.contains(value), "\(element.name) \(name)=\(text)")
      }
    }
    #expect(!svg.contains("nan") && !svg.contains("inf"))
  }

  @Test(arguments: extremes) func `a distribution of any values is a picture`(values: [Double]) throws {
    for limit in [nil, 0, 100, 1e30, -4, .nan] as [Double?] {
      let chart = DistributionChart(
        title: "t", unit: "ms", values: values.map { ($0, 3) },
        percentiles: values.isEmpty
          ? [] : [.init(name: "p50", value: values[0]), .init(name: "p99", value: values.last!)],
        limit: limit.map { .init(name: "budget", value: $0) },
        parts: values.map { .init(name: "part", median: $0, high: $0) })
      try check(chart.svg, title: "t")
    }
  }

  @Test(arguments: extremes) func `several distributions of any values are one picture`(values: [Double]) throws {
    let charts = ["first", "second", "third"].map { name in
      DistributionChart(
        title: name, unit: "ms", values: values.map { ($0, 3) }, percentiles: [],
        limit: .init(name: "budget", value: 100), parts: values.map { .init(name: "part", median: $0, high: $0) })
    }
    for count in 0...3 { try check(DistributionChart.svg(title: "t", Array(charts.prefix(count))), title: "t") }
  }

  /// Of two charts in one picture, the stacked bars of the shorter one are as much shorter as its values are.
  @Test func `stacked bars of several distributions have one scale, and each has its own budget and percentiles`()
    throws
  {
    let charts = [("slow", 40.0), ("fast", 10.0)].map { name, value in
      DistributionChart(
        title: name, unit: "ms", values: [(value, 1)], percentiles: [.init(name: "p50", value: value)],
        limit: .init(name: "budget", value: 100), parts: [.init(name: "\(name) part", median: value, high: value)])
    }
    let svg = DistributionChart.svg(title: "both", charts)
    let widths = try XMLDocument.parse(Array(svg.utf8).span).children.filter {
      $0.name == "rect" && $0.attributes["height"] == "18"
    }.compactMap { $0.attributes["width"].flatMap(Double.init) }
    #expect(widths.count == 4 && widths[0] == widths[1] && widths[2] == widths[3])
    #expect(abs(widths[0] - 4 * widths[2]) < 1)
    for text in ["slow", "fast", "slow part", "fast part", "p50 40 ms", "p50 10 ms"] {
      #expect(svg.contains(">\(text)<"))
    }
    #expect(svg.components(of: ">budget 100 ms<") == 2)
    #expect(svg.contains("<desc>slow: 1 values from 40 ms to 40 ms."))
  }

  @Test(arguments: extremes) func `curves of any values are a picture`(values: [Double]) throws {
    for (x, y) in [(true, true), (true, false), (false, true), (false, false)] {
      let chart = CurveChart(
        title: "t", x: .init(label: "x", isLogarithmic: x), y: .init(label: "y", isLogarithmic: y),
        series: [.init(name: "none", points: []), .init(name: "some", points: values.map { ($0, $0) })])
      try check(chart.svg, title: "t")
    }
    let none = CurveChart(
      title: "t", x: .init(label: "x", isLogarithmic: true), y: .init(label: "y", isLogarithmic: true), series: [])
    try check(none.svg, title: "t")
  }

  @Test(arguments: extremes) func `bars of any values are a picture`(values: [Double]) throws {
    for isLogarithmic in [false, true] {
      let chart = BarChart(
        title: "t", unit: "", isLogarithmic: isLogarithmic,
        bars: values.map { .init(name: "n", value: $0, low: $0 / 2, high: $0 * 2, limit: $0) })
      try check(chart.svg, title: "t")
    }
  }

  /// On a logarithmic scale, a tenth of the time is as far from 1 as ten times the time.
  @Test func `bars of ratios begin at 1 and have the same length for a ratio and its inverse`() throws {
    let chart = BarChart(
      title: "t", unit: "", isLogarithmic: true,
      bars: [0.1, 10, 1].map { .init(name: "n", value: $0, low: $0, high: $0, limit: 1) })
    let bars = try XMLDocument.parse(Array(chart.svg.utf8).span).children.filter {
      $0.name == "rect" && $0.attributes["height"] == "16"
    }.map { (start: Double($0.attributes["x"]!)!, width: Double($0.attributes["width"]!)!) }
    #expect(bars.count == 3 && bars[0].width == bars[1].width && bars[0].width > 50 && bars[2].width == 0)
    #expect(abs(bars[0].start + bars[0].width - bars[1].start) < 0.2)
  }

  @Test func `texts are escaped, and characters that XML forbids are replaced`() throws {
    let hostile = "</text><script>alert(\"1\")</script>&'\u{1}\u{ffff}"
    let escaped = "&lt;/text&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;\u{fffd}\u{fffd}"
    let curves = CurveChart(
      title: hostile, x: .init(label: hostile, isLogarithmic: true), y: .init(label: hostile, isLogarithmic: true),
      series: [.init(name: hostile, points: [(1, 1)])])
    let bars = BarChart(
      title: hostile, unit: hostile, bars: [.init(name: hostile, value: 1, low: 1, high: 1, limit: nil)])
    let distribution = DistributionChart(
      title: hostile, unit: hostile, values: [(1, 1)], percentiles: [.init(name: hostile, value: 1)],
      limit: .init(name: hostile, value: 1), parts: [.init(name: hostile, median: 1, high: 1)])
    for svg in [curves.svg, bars.svg, distribution.svg] {
      try check(svg, title: escaped)
      #expect(!svg.contains("<script"))
    }
  }

  @Test(arguments: [0.0943, 18.6, 96.7, 12_345]) func `the ticks of values that hardly differ have different texts`(
    value: Double
  ) {
    let chart = DistributionChart(
      title: "t", unit: "ms", values: [(value, 90), (value * 1.0002, 9), (value * 1.0009, 1)],
      percentiles: [.init(name: "p99", value: value * 1.0002)], limit: nil, parts: [])
    let texts = chart.svg.split(separator: "text-anchor=\"middle\">").dropFirst().map { $0.prefix { $0 != "<" } }
    #expect(texts.count >= 2 && Set(texts).count == texts.count, "\(texts)")
  }

  @Test func `no bar is hidden by the edges of marks`() throws {
    let svg = DistributionChart(
      title: "t", unit: "ms", values: [(18.6, 100), (18.7, 1)],
      percentiles: [.init(name: "p50", value: 18.6), .init(name: "p99", value: 18.7)],
      limit: .init(name: "budget", value: 100), parts: []
    ).svg
    let beforeBars = try #require(svg.firstRange(of: "<rect class=\"s0\"")).lowerBound
    #expect(
      svg[beforeBars...].components(of: "class=\"mark\"") == 2
        && svg[beforeBars...].components(of: "class=\"limit\"") == 2)
    #expect(!svg[beforeBars...].contains("class=\"edge\"") && svg[..<beforeBars].components(of: "class=\"edge\"") == 3)
  }

  @Test func `a limit far beyond the values is drawn behind a break of the axis, and a long tail is counted`() {
    func svg(_ values: [(value: Double, count: UInt64)], limit: Double) -> String {
      DistributionChart(
        title: "t", unit: "ms", values: values, percentiles: [.init(name: "p99", value: 20)],
        limit: .init(name: "budget", value: limit), parts: []
      ).svg
    }
    let near = svg([(16, 100), (20, 5)], limit: 18)
    let far = svg([(16, 100), (20, 5)], limit: 100)
    #expect(far.components(of: "class=\"axis\"") - near.components(of: "class=\"axis\"") == 3)
    #expect(far.contains("budget 100 ms"))
    #expect(svg([(16, 100), (20, 5), (400, 2)], limit: 100).contains("2 values lie above 20.8 ms, at most at 400 ms"))
  }

  @Test(arguments: [
    (0, "0"), (1, "1"), (16.07, "16.1"), (0.5, "0.5"), (999.4, "999"), (999.9, "1,000"), (12_345.6, "12,346"),
    (1_000_000, "1 M"), (2_823_040, "2.82 M"), (4e9, "4 G"), (0.000_25, "2.5·10⁻⁴"), (1e15, "10¹⁵"), (-3.5, "−3.5"),
    (0.001_234, "0.00123"), (.nan, "–"), (9.999e14, "10¹⁵"), (9.996, "10"),
  ]) func `numbers have three significant digits`(value: Double, text: String) {
    #expect(NumberText.of(value) == text)
  }
}

extension StringProtocol {
  /// The number of times that a text occurs.
  fileprivate func components(of text: String) -> Int {
    split(separator: text, omittingEmptySubsequences: false).count - 1
  }
}
