import HoldfastFormats

extension JSONValue {
  /// The value as YAML in block style. Texts are in double quotes unless they are plain words.
  ///
  /// Source: YAML 1.2 §5.7 and §8.2.
  var yaml: String {
    var text = ""
    write(to: &text, indentation: 0)
    return text
  }

  private func write(to text: inout String, indentation: Int) {
    switch self {
    case .object(let members) where !members.isEmpty:
      for (index, (name, value)) in members.enumerated() {
        if index > 0 { text += String(repeating: " ", count: indentation) }
        text += Self.scalar(name) + ":"
        value.writeBehindName(to: &text, indentation: indentation + 2)
      }
    case .array(let elements) where !elements.isEmpty:
      for (index, element) in elements.enumerated() {
        if index > 0 { text += String(repeating: " ", count: indentation) }
        text += "- "
        element.write(to: &text, indentation: indentation + 2)
      }
    default: text += scalar + "\n"
    }
  }

  private func writeBehindName(to text: inout String, indentation: Int) {
    if isBlock {
      text += "\n" + String(repeating: " ", count: indentation)
      write(to: &text, indentation: indentation)
    } else {
      text += " " + scalar + "\n"
    }
  }

  private var isBlock: Bool { !(members ?? []).isEmpty || !(elements ?? []).isEmpty }

  private var scalar: String {
    if case .string(let text) = self { return Self.scalar(text) }
    return String(decoding: compact(), as: UTF8.self)
  }

  /// A text without quotes if it is one plain word that YAML takes for nothing else.
  private static func scalar(_ text: String) -> String {
    let isPlain =
      text.first.map { $0.isLetter || $0 == "/" } ?? false
      && text.utf8.allSatisfy { $0 < 0x80 && $0 > 0x20 && !"\"'#:,[]&*!|>%@`".utf8.contains($0) }
      && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(text.lowercased())
    return isPlain ? text : String(decoding: JSONValue.string(text).compact(), as: UTF8.self)
  }
}
