import HoldfastJSON

/// Prints what happens line by line, and remembers whether every line came out as it must.
struct Story {
  private(set) var isTrue = true
  /// Prints nothing; ``json`` has it all.
  let isSilent: Bool
  private var lines: [JSONValue] = []

  init(isSilent: Bool) { self.isSilent = isSilent }

  func heading(_ text: String) {
    tell("")
    tell(text)
  }

  /// A line that only a person reads.
  func tell(_ text: String) { if !isSilent { Console.result(text) } }

  /// A step that went as it must, or an error would have been thrown.
  mutating func step(_ text: String, _ detail: String) {
    lines.append(.object([("line", .string(text)), ("detail", .string(detail))]))
    tell("  \(text.padded(54))\(detail)")
  }

  /// A line that must come out as `expected`.
  mutating func expect(_ text: String, _ expected: String, _ actual: String, detail: String = "") {
    let holds = expected == actual
    if !holds { isTrue = false }
    lines.append(
      .object([
        ("line", .string(text)), ("expected", .string(expected)), ("actual", .string(actual)), ("holds", .bool(holds)),
        ("detail", .string(detail)),
      ]))
    guard !isSilent else { return }
    let outcome = holds ? expected : "\(actual), but it must be: \(expected)"
    Console.result("\(text.padded(54))\(outcome)\(detail.isEmpty ? "" : ", \(detail)")", after: mark(holds) + " ")
  }

  /// All that was told, as one object.
  var json: JSONValue { .object([("holds", .bool(isTrue)), ("lines", .array(lines))]) }

  private func mark(_ holds: Bool) -> String {
    guard Console.hasColour else { return holds ? "✓" : "✗" }
    return holds ? "\u{1b}[32m✓\u{1b}[0m" : "\u{1b}[31m✗\u{1b}[0m"
  }
}
