/// Text by others, made safe for a person who reads it on a terminal or in a log.
extension String {
  /// The text on one line, without anything that a terminal obeys or that nobody sees: every such character is written as
  /// `\u{1b}`. What was typed as `\u{` is written as `\u{5c}u{`, so that no two texts look alike.
  ///
  /// Characters count as unseen where Unicode has them as controls, formats (zero widths, changes of direction, tags), line and
  /// paragraph separators, spaces other than the plain one, private or not assigned, or says that they may be left out of sight
  /// (variation selectors, fillers).
  package var printable: String {
    var text = ""
    var rest = unicodeScalars[...]
    while let scalar = rest.popFirst() {
      if scalar.isUnseen || scalar == "\\" && rest.starts(with: "u{".unicodeScalars) {
        text += scalar.escape
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// The text between quotation marks, on one line: as ``printable``, and `\` and `"` are written as `\\` and `\"`.
  ///
  /// Nothing in the text can end the quotation, so that a value cannot pass for a field next to it.
  package var quoted: String {
    var text = "\""
    var isFirst = true
    for scalar in unicodeScalars {
      if scalar == "\\" || scalar == "\"" {
        text += "\\"
        text.unicodeScalars.append(scalar)
      } else if scalar.isUnseen || isFirst && scalar.isMark {
        // A mark at the beginning would be drawn over the quotation mark.
        text += scalar.escape
      } else {
        text.unicodeScalars.append(scalar)
      }
      isFirst = false
    }
    return text + "\""
  }

  /// The text as a shell takes it for one word.
  package var shellWord: String {
    let isPlain = !isEmpty && unicodeScalars.allSatisfy { $0.isPlainInShell }
    if isPlain { return self }
    var text = "'"
    for scalar in unicodeScalars {
      if scalar == "'" { text += "'\\''" } else { text.unicodeScalars.append(scalar) }
    }
    return text + "'"
  }
}

extension Unicode.Scalar {
  fileprivate var escape: String { "\\u{\(String(value, radix: 16))}" }

  /// Whether a terminal obeys it, or a person does not see it.
  fileprivate var isUnseen: Bool {
    // The usual case, without a look at the tables.
    if 0x20...0x7e ~= value { return false }
    if properties.isDefaultIgnorableCodePoint || Self.blankSymbols.contains(value) { return true }
    return switch properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned: true
    case .spaceSeparator, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }

  /// Characters that are drawn as nothing, although Unicode does not count them among the ignorable ones: the Braille pattern
  /// without dots, the object replacement character, the null note head, the full and the half blank hieroglyph, and the Khitan
  /// small script filler.
  private static let blankSymbols: [UInt32] = [0x2800, 0xfffc, 0x1d159, 0x13441, 0x13442, 0x16fe4]

  fileprivate var isMark: Bool {
    switch properties.generalCategory {
    case .nonspacingMark, .spacingMark, .enclosingMark: true
    default: false
    }
  }

  fileprivate var isPlainInShell: Bool {
    switch self {
    case "a"..."z", "A"..."Z", "0"..."9", "/", ".", "_", "-", ",", ":", "=", "+", "@", "%": true
    default: value >= 0x80
    }
  }
}
