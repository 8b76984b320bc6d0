import HoldfastCore

/// The values of `/etc/os-release` that evidence states, and by which terms are checked.
///
/// Source: os-release(5): assignments of the shell, without its expansions.
package enum SystemRelease {
  /// Returns the value of the last assignment that begins with `name`; nil if there is none, it is empty, has more than 64
  /// bytes, or is not properly quoted.
  package static func value(of name: StaticString, in release: [UInt8]) -> BoundedText<64>? {
    let assignments = release.lines.filter { $0.trimmed.hasPrefix(name) }
    guard let value = assignments.last?.trimmed.dropFirst(name.utf8CodeUnitCount), let text = unquoted(value) else {
      return nil
    }
    guard let bounded = BoundedText<64>(text.span), !bounded.isEmpty else { return nil }
    return bounded
  }

  /// Returns a word of the shell without its quotes and backslashes; nil if a quote is left open, or text follows the word.
  private static func unquoted(_ word: ArraySlice<UInt8>) -> [UInt8]? {
    var text: [UInt8] = []
    var quote: UInt8?
    var isEscaped = false
    for byte in word {
      if isEscaped {
        text.append(byte)
        isEscaped = false
      } else if byte == UInt8(ascii: "\\"), quote != UInt8(ascii: "'") {
        isEscaped = true
      } else if let open = quote {
        if byte == open { quote = nil } else { text.append(byte) }
      } else if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
        quote = byte
      } else {
        guard !byte.isBlank else { return nil }
        text.append(byte)
      }
    }
    return quote == nil && !isEscaped ? text : nil
  }
}
