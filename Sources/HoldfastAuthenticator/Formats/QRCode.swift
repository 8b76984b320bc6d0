import CQREncode
import HoldfastCore
import HoldfastOpenSSL

/// Why a QR code was not made.
package enum QRCodeFault: Error, Equatable, Sendable {
  /// Nothing to encode.
  case empty
  /// More than the largest symbol holds: 2,331 bytes.
  case tooLong
}

/// A QR code, which shows a secret as well as the text that is in it does.
///
/// Source: ISO/IEC 18004. Error correction level M. What libqrencode itself works on is freed without being wiped.
package struct QRCode: ~Copyable, Sendable {
  /// The modules of a side, 21 to 177.
  package let width: Int
  /// One byte a module, row by row: 1 is dark.
  private let modules: SecretBytes

  package init(encoding text: Span<UInt8>) throws(QRCodeFault) {
    guard !text.isEmpty else { throw .empty }
    // The largest symbol of level M; libqrencode would answer nothing as well when memory is short.
    guard text.count <= 2331 else { throw .tooLong }
    let symbol = unsafe text.withUnsafeBufferPointer { text in
      unsafe QRcode_encodeData(CInt(text.count), text.baseAddress, 0, QR_ECLEVEL_M)
    }
    guard let symbol = unsafe symbol else { throw .tooLong }
    defer { unsafe QRcode_free(symbol) }
    let width = unsafe Int(symbol.pointee.width)
    var modules = SecretBytes(zeros: width * width)
    var bytes = modules.mutableBytes
    for index in bytes.indices { unsafe bytes[index] = symbol.pointee.data[index] & 1 }
    var drawn = unsafe MutableSpan(_unsafeStart: symbol.pointee.data, count: width * width)
    wipe(&drawn)
    self.width = width
    self.modules = modules
  }

  /// Whether the module is dark; those outside of the symbol are light.
  package func isDark(row: Int, column: Int) -> Bool {
    guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
    return modules.bytes[row * width + column] == 1
  }
}

extension QRCode {
  /// Who makes dark modules dark and light ones light.
  package enum Contrast: Sendable {
    /// The terminal writes dark on light: blocks are dark modules.
    case darkOnLight
    /// The terminal writes light on dark: blocks are light modules.
    case lightOnDark
    /// The text says black on white itself, by ANSI colours, whatever the terminal's are.
    case coloured
  }

  /// The light modules around a symbol that readers may rely on. Source: ISO/IEC 18004 §5.3.8.
  package static let usualQuietZone = 4

  /// The columns of a terminal that a drawing takes.
  package func columnCount(quietZone: Int = usualQuietZone) -> Int { width + 2 * quietZone }

  /// The symbol as UTF-8 text, two rows of modules a line, in half blocks; every line ends in a newline.
  ///
  /// `quietZone` is how many light modules there are on each side. Light modules below the last row, where their number is odd,
  /// are drawn as such.
  package func drawing(quietZone: Int = usualQuietZone, contrast: Contrast) -> SecretBytes {
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
