/// A picture in SVG, to which a chart adds lines, areas and texts. Positions are in pixels from the top left.
///
/// Its colours follow the reader's preference for light or dark. It has its own background, because a page may differ from that
/// preference. Source: SVG 2; CSS Media Queries 5 §12.5; WAI-ARIA Graphics.
package struct Picture {
  /// The width of every picture.
  package static let width = 760.0
  /// The distance from the edge to any text.
  package static let margin = 16.0
  /// The height of a line of text.
  package static let lineHeight = 18.0

  private var body = ""

  /// The ends of a text that can be at its position.
  package enum Anchor: String {
    /// The text begins there.
    case start
    /// The middle of the text is there.
    case middle
    /// The text ends there.
    case end
  }

  /// Creates an empty picture.
  package init() {}

  /// Adds a straight line.
  package mutating func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ style: String) {
    body +=
      "<line class=\"\(style)\" x1=\"\(number(x1))\" y1=\"\(number(y1))\" x2=\"\(number(x2))\" y2=\"\(number(y2))\"/>\n"
  }

  /// Adds a straight line with an edge, so that it is visible on an area of any colour.
  package mutating func mark(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ style: String) {
    line(x1, y1, x2, y2, "edge")
    line(x1, y1, x2, y2, style)
  }

  /// Adds a filled rectangle.
  package mutating func rectangle(_ x: Double, _ y: Double, width: Double, height: Double, _ style: String) {
    body +=
      "<rect class=\"\(style)\" x=\"\(number(x))\" y=\"\(number(y))\" width=\"\(number(max(width, 0)))\" "
      + "height=\"\(number(max(height, 0)))\"/>\n"
  }

  /// Adds a line through points, and a mark at each.
  package mutating func curve(_ points: [(x: Double, y: Double)], _ style: String) {
    let pairs = points.map { "\(number($0.x)),\(number($0.y))" }.joined(separator: " ")
    if points.count > 1 { body += "<polyline class=\"\(style)\" points=\"\(pairs)\"/>\n" }
    for point in points {
      body += "<circle class=\"\(style)\" cx=\"\(number(point.x))\" cy=\"\(number(point.y))\" r=\"3\"/>\n"
    }
  }

  /// Adds one line of text, whose base line is at `y`.
  package mutating func text(_ text: String, _ x: Double, _ y: Double, _ anchor: Anchor = .start, _ style: String = "")
  {
    let names = style.isEmpty ? "" : " class=\"\(style)\""
    body +=
      "<text\(names) x=\"\(number(x))\" y=\"\(number(y))\" text-anchor=\"\(anchor.rawValue)\">\(Self.escaped(text))</text>\n"
  }

  /// Adds a text in as many lines as it needs, of which the first base line is at `y`, and returns the base line that would follow.
  package mutating func paragraph(_ text: String, _ x: Double, _ y: Double, width: Double, _ style: String = "")
    -> Double
  {
    var y = y
    for line in TextWidth.lines(of: text, width: width, isBold: style == "heading") {
      self.text(line, x, y, .start, style)
      y += Self.lineHeight
    }
    return y
  }

  /// Returns the whole text of the picture.
  ///
  /// - Parameters:
  ///   - title: Its name, which a screen reader says first.
  ///   - description: The data in words.
  ///   - height: The height in pixels.
  package func svg(title: String, description: String, height: Double) -> String {
    let size = "width=\"\(number(Self.width))\" height=\"\(number(height))\""
    return """
      <svg xmlns="http://www.w3.org/2000/svg" role="img" \(size) viewBox="0 0 \(number(Self.width)) \(number(height))">
      <title>\(Self.escaped(title))</title>
      <desc>\(Self.escaped(description))</desc>
      <style>
      \(Self.stylesheet)
      </style>
      <rect class="background" width="100%" height="100%"/>
      \(body)</svg>

      """
  }

  /// A text as content of an element or attribute. Characters that XML forbids become U+FFFD. Source: XML 1.0 §2.2 and §2.4.
  package static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x26: result += "&amp;"
      case 0x3c: result += "&lt;"
      case 0x3e: result += "&gt;"
      case 0x22: result += "&quot;"
      case 0x27: result += "&#39;"
      case 0x09, 0x0a, 0x0d: result += " "
      case 0..<0x20, 0x7f..<0xa0, 0xfffe, 0xffff: result += "\u{fffd}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// A coordinate in tenths of a pixel.
  private func number(_ value: Double) -> String {
    NumberText.decimal(value.isFinite ? min(max(value, -10_000), 100_000) : 0, decimals: 1)
  }

  /// The number of colours of series. Further series have the same colours with other dashes.
  static let colourCount = 8

  private static let stylesheet = """
    svg { --ground: #ffffff; --text: #1b1f24; --quiet: #57606a; --grid: #d8dee4; --limit: #cf222e;
      --c0: #0969da; --c1: #bc4c00; --c2: #1a7f37; --c3: #8250df; --c4: #bf3989; --c5: #0a7e8c; --c6: #9a6700; --c7: #57606a; }
    @media (prefers-color-scheme: dark) {
      svg { --ground: #0d1117; --text: #e6edf3; --quiet: #9ea7b3; --grid: #30363d; --limit: #ff7b72;
        --c0: #58a6ff; --c1: #f0883e; --c2: #3fb950; --c3: #bc8cff; --c4: #f778ba; --c5: #39c5cf; --c6: #d29922; --c7: #9ea7b3; }
    }
    .background { fill: var(--ground); }
    text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--text);
      paint-order: stroke; stroke: var(--ground); stroke-width: 3px; stroke-linejoin: round; }
    .heading { font-size: 15px; font-weight: 600; }
    .quiet { fill: var(--quiet); }
    line, polyline { fill: none; stroke-width: 1.5px; }
    .axis { stroke: var(--quiet); }
    .grid { stroke: var(--grid); stroke-width: 1px; }
    .edge { stroke: var(--ground); stroke-width: 5px; }
    .mark { stroke: var(--text); }
    .limit { stroke: var(--limit); stroke-width: 2px; }
    text.limit { fill: var(--limit); stroke: var(--ground); stroke-width: 3px; }
    polyline { stroke-width: 2px; }

    """
    + (0..<colourCount).map {
      ".s\($0) { stroke: var(--c\($0)); } rect.s\($0), circle.s\($0) { fill: var(--c\($0)); stroke: none; }"
    }.joined(separator: "\n")
    + "\n.dashed { stroke-dasharray: 6 3; }\n.dotted { stroke-dasharray: 2 3; }"

  /// The style of the series with that number, counted from 0.
  package static func series(_ index: Int) -> String {
    "s\(index % colourCount)" + ["", " dashed", " dotted"][index / colourCount % 3]
  }
}

extension Picture {
  /// Draws the ticks of a horizontal scale under its axis, and their labels as far as there is room.
  package mutating func ticks(of scale: Scale, at y: Double, unit: String = "") {
    var free = 0.0
    for tick in scale.ticks {
      let (x, label) = (scale.position(of: tick), NumberText.of(tick, unit))
      line(x, y, x, y + 5, "axis")
      let half = TextWidth.of(label) / 2
      guard x - half >= free, x + half <= Self.width else { continue }
      text(label, x, y + Self.lineHeight + 2, .middle, "quiet")
      free = x + half + 6
    }
  }
}
