#if Service
import HoldfastFormats

/// A plot of counts by day, as stacked bars, with the same numbers as a table.
struct PlotView {
  let id: String
  let title: String
  /// The content of the plot, in a sentence.
  let summary: String
  /// The number of days, which is the width of the drawing.
  let width: Int
  let bars: [BarView]
  let top: String
  let first: String
  let last: String
  let legend: [LegendView]
  let header: String
  let rows: [PlotRowView]
  let isEmpty: Bool

  /// The height of the drawing.
  private static let height = 100.0
  /// The number of series with a colour; all others share the last one.
  private static let seriesLimit = 6

  /// Plots counts.
  ///
  /// - Parameter days: For each day, its beginning in Unix seconds, and the counts by series.
  init(
    _ id: String, _ title: String, counted noun: String, header: String,
    days: [(day: UInt64, counts: [(name: String, count: UInt64)])]
  ) {
    (self.id, self.title, self.header) = (id, title, header)
    var totals: [String: UInt64] = [:]
    for (name, count) in days.flatMap(\.counts) { totals[name, default: 0] += count }
    let names = totals.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
    let isFolded = names.count > Self.seriesLimit
    let shown = Array(names.prefix(isFolded ? Self.seriesLimit - 1 : Self.seriesLimit))
    let most = days.map { $0.counts.reduce(0) { $0 + $1.count } }.max() ?? 0
    let total = totals.values.reduce(0, +)
    width = max(days.count, 1)
    top = String(most)
    first = Self.date(days.first?.day)
    last = Self.date(days.last?.day)
    isEmpty = total == 0
    summary =
      "\(total) \(total == 1 ? String(noun.dropLast()) : noun) from \(first) to \(last), at most \(most) on one day."
    bars = days.enumerated().flatMap { index, day in
      Self.bars(at: index, day.day, day.counts, shown, most)
    }
    var legend = shown.enumerated().map { index, name in
      LegendView(series: index, label: name, count: String(totals[name] ?? 0))
    }
    if isFolded {
      let rest = names.dropFirst(shown.count).reduce(0) { $0 + (totals[$1] ?? 0) }
      legend.append(LegendView(series: Self.seriesLimit - 1, label: "all others", count: String(rest)))
    }
    self.legend = legend.count > 1 || header == "Reason" ? legend : []
    rows = days.reversed().flatMap { day in
      day.counts.filter { $0.count > 0 }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
        .map { PlotRowView(day: Self.date(day.day), series: $0.name, count: String($0.count)) }
    }
  }

  private static func bars(
    at index: Int, _ day: UInt64, _ counts: [(name: String, count: UInt64)], _ shown: [String], _ most: UInt64
  ) -> [BarView] {
    var stacked = 0.0
    var bars: [BarView] = []
    for series in 0..<seriesLimit {
      let parts = counts.filter { (shown.firstIndex(of: $0.name) ?? seriesLimit - 1) == series && $0.count > 0 }
      let count = parts.reduce(0) { $0 + $1.count }
      guard count > 0, most > 0 else { continue }
      let height = Double(count) / Double(most) * Self.height
      stacked += height
      let name = parts.count == 1 ? parts[0].name : "all others"
      bars.append(
        BarView(
          x: Self.text(Double(index) + 0.1), y: Self.text(Self.height - stacked), height: Self.text(height),
          series: series, label: "\(Self.date(day)): \(count) \(name)"))
    }
    return bars
  }

  private static func text(_ number: Double) -> String { String((number * 100).rounded() / 100) }

  private static func date(_ seconds: UInt64?) -> String {
    String(Timestamp(unixSeconds: seconds ?? 0).description.prefix(10))
  }
}

struct BarView {
  let x: String
  let y: String
  let height: String
  let series: Int
  let label: String
}

struct LegendView {
  let series: Int
  let label: String
  let count: String
}

struct PlotRowView {
  let day: String
  let series: String
  let count: String
}

extension PlotView {
  /// The plots of the operation `statistics`: issued tokens, and refusals by reason.
  static func plots(of statistics: JSONValue) -> [PlotView] {
    let days = statistics["days"]?.elements ?? []
    return [
      PlotView(
        "issued", "Issued tokens by day", counted: "tokens", header: "Kind",
        days: days.map { ($0["day"]?.number ?? 0, [("issued", $0["issued"]?.number ?? 0)]) }),
      PlotView(
        "refused", "Refusals by reason and day", counted: "refusals", header: "Reason",
        days: days.map { day in
          (day["day"]?.number ?? 0, (day["refused"]?.members ?? []).map { ($0.0, $0.1.number ?? 0) })
        }),
    ]
  }
}
#endif
