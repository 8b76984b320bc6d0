/// An estimate of the width of texts, since a picture is made without the font with which it will be shown.
package enum TextWidth {
  /// Returns the pixels that a text of 13 px, or a bold one of 15 px, takes at most in the usual fonts.
  package static func of(_ text: String, isBold: Bool = false) -> Double {
    text.unicodeScalars.reduce(0) { $0 + ems($1) } * (isBold ? 17 : 13)
  }

  /// Returns the width of a character: that of DejaVu Sans, which is wider than most fonts, rounded up.
  private static func ems(_ scalar: Unicode.Scalar) -> Double {
    switch scalar {
    case "m", "w", "M", "W", "%", "@": 1
    case "A"..."Z", "+", "=", "<", ">": 0.84
    case " ", "i", "j", "l", ".", ",": 0.36
    case "\0"..."\u{ff}": 0.65
    case "\u{100}"..<"\u{1100}", "\u{2000}"..<"\u{2100}": 0.9
    default: 1.1
    }
  }

  /// Splits a text into lines of at most `width` pixels, between words where possible. There is always a line.
  package static func lines(of text: String, width: Double, isBold: Bool = false) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(whereSeparator: \.isWhitespace) {
      for piece in pieces(of: String(word), width: width, isBold: isBold) {
        let longer = line.isEmpty ? piece : "\(line) \(piece)"
        if of(longer, isBold: isBold) <= width {
          line = longer
        } else {
          lines.append(line)
          line = piece
        }
      }
    }
    return lines + [line]
  }

  /// Splits a word that is wider than a line.
  private static func pieces(of word: String, width: Double, isBold: Bool) -> [String] {
    var pieces = [""]
    for character in word {
      let longer = pieces[pieces.count - 1] + String(character)
      if pieces[pieces.count - 1].isEmpty || of(longer, isBold: isBold) <= width {
        pieces[pieces.count - 1] = longer
      } else {
        pieces.append(String(character))
      }
    }
    return pieces
  }
}
