import HoldfastCore
import HoldfastOpenSSL

extension QRCode {
  /// Who makes dark modules dark and light ones light.
  public enum Contrast: Sendable {
    /// The terminal writes dark on light: blocks are dark modules.
    case darkOnLight
    /// The terminal writes light on dark: blocks are light modules.
    case lightOnDark
    /// The text says black on white itself, by ANSI colours, whatever the terminal's are.
    case coloured
  }

  /// The light modules around a symbol that readers may rely on. Source: ISO/IEC 18004 §5.3.8.
  public static let usualQuietZone = 4

  /// The columns of a terminal that a drawing takes.
  public func columnCount(quietZone: Int = usualQuietZone) -> Int { width + 2 * quietZone }

  /// The symbol as UTF-8 text, two rows of modules a line, in half blocks; every line ends in a newline.
  ///
  /// `quietZone` is how many light modules there are on each side. Light modules below the last row, where their number is odd,
  /// are drawn as such.
  public func drawing(quietZone: Int = usualQuietZone, contrast: Contrast) -> SecretBytes {
    let margin = max(quietZone, 0)
    let side = width + 2 * margin
    var text = SecretBuffer(capacity: side * side * 2)
    for line in 0..<(side + 1) / 2 {
      if contrast == .coloured { text.append("\u{1b}[30;107m") }
      for column in 0..<side {
        let upper = isDark(row: 2 * line - margin, column: column - margin)
        let lower = isDark(row: 2 * line + 1 - margin, column: column - margin)
        let inverted = contrast == .lightOnDark
        switch (upper != inverted, lower != inverted) {
        case (true, true): text.append("█")
        case (true, false): text.append("▀")
        case (false, true): text.append("▄")
        case (false, false): text.append(" ")
        }
      }
      text.append(contrast == .coloured ? "\u{1b}[0m\n" : "\n")
    }
    return SecretBytes(copying: text.bytes)
  }
}
