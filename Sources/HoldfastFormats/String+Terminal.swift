/// Conversions that make untrusted text safe to show on a terminal or in a log.
extension String {
  /// The text on one line, with every character that controls a terminal or is invisible written as `\u{1b}`.
  ///
  /// A literal `\u{` is written as `\u{5c}u{`, so that no two texts look alike. A character is invisible if Unicode classifies
  /// it as a control, a format (zero widths, changes of direction, tags), a line or paragraph separator, a space other than the
  /// plain one, private or unassigned, or as default ignorable (variation selectors, fillers).
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

  /// The text between quotation marks, on one line: escaped as in ``printable``, with `\` and `"` written as `\\` and `\"`.
  ///
  /// No text can end the quotation, so a value cannot be mistaken for the field next to it.
  package var quoted: String {
    var text = "\""
    var isFirst = true
    for scalar in unicodeScalars {
      if scalar == "\\" || scalar == "\"" {
        text += "\\"
        text.unicodeScalars.append(scalar)
      } else if scalar.isUnseen || isFirst && scalar.isMark {
        // A combining mark at the beginning would be drawn over the quotation mark.
        text += scalar.escape
      } else {
        text.unicodeScalars.append(scalar)
      }
      isFirst = false
    }
    return text + "\""
  }

  /// The text in a form that a shell reads as one word.
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

  /// Whether the character controls a terminal or is invisible.
  fileprivate var isUnseen: Bool {
    // Fast path for the usual characters, without a table look-up.
    if 0x20...0x7e ~= value { return false }
    if properties.isDefaultIgnorableCodePoint || Self.blankSymbols.contains(value) { return true }
    return switch properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned: true
    case .spaceSeparator, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }

  /// Characters with an empty glyph that Unicode does not classify as ignorable: the Braille pattern without dots, the object
  /// replacement character, the null note head, the full and the half blank hieroglyph, and the Khitan small script filler.
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
