/// Prints what happens line by line, and remembers whether every line came out as it must.
struct Story {
  private(set) var isTrue = true

  func heading(_ text: String) { Console.result("\n\(text)") }

  /// A step that went as it must, or an error would have been thrown.
  func step(_ text: String, _ detail: String) { Console.result("  \(text.padded(54))\(detail)") }

  /// A line that must come out as `expected`.
  mutating func expect(_ text: String, _ expected: String, _ actual: String, detail: String = "") {
    let holds = expected == actual
    if !holds { isTrue = false }
    let outcome = holds ? expected : "\(actual), but it must be: \(expected)"
    Console.result("\(mark(holds)) \(text.padded(54))\(outcome)\(detail.isEmpty ? "" : ", \(detail)")")
  }

  private func mark(_ holds: Bool) -> String {
    guard Console.hasColour else { return holds ? "✓" : "✗" }
    return holds ? "\u{1b}[32m✓\u{1b}[0m" : "\u{1b}[31m✗\u{1b}[0m"
  }
}
