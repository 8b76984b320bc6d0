import CQREncode
import HoldfastCore
import HoldfastOpenSSL

/// The reasons why a QR code could not be made.
package enum QRCodeFault: Error, Equatable, Sendable {
  /// The text is empty.
  case empty
  /// The text is longer than 2,331 bytes, the capacity of the largest symbol, or libqrencode failed.
  case tooLong
}

/// A QR code. It reveals a secret in the encoded text as the text itself does.
///
/// Source: ISO/IEC 18004. The error correction level is M. The working memory of libqrencode is freed without being
/// wiped.
package struct QRCode: ~Copyable, Sendable {
  /// The number of modules on each side, 21 to 177.
  package let width: Int
  /// The modules row by row, one byte each; 1 is dark.
  private let modules: SecretBytes

  /// Encodes `text`, 1 to 2,331 bytes.
  package init(encoding text: Span<UInt8>) throws(QRCodeFault) {
    guard !text.isEmpty else { throw .empty }
    // The capacity of the largest symbol at level M. libqrencode returns nothing when memory is short as well, so the
    // length is checked here.
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

  /// Returns whether the module is dark; modules outside the symbol are light.
  package func isDark(row: Int, column: Int) -> Bool {
    guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
    return modules.bytes[row * width + column] == 1
  }
}

extension QRCode {
  /// The way in which dark modules become dark on the terminal and light modules light.
  package enum Contrast: Sendable {
    /// The terminal shows dark text on a light background: blocks are dark modules.
    case darkOnLight
    /// The terminal shows light text on a dark background: blocks are light modules.
    case lightOnDark
    /// The drawing sets black on white with ANSI colours, independently of the terminal's colours.
    case coloured
  }

  /// The width of the light margin that readers rely on, in modules. Source: ISO/IEC 18004 §5.3.8.
  package static let usualQuietZone = 4

  /// Returns the number of terminal columns that a drawing takes.
  package func columnCount(quietZone: Int = usualQuietZone) -> Int { width + 2 * quietZone }

  /// Draws the symbol as UTF-8 text in half blocks, two rows of modules per line. Every line ends in a newline.
  ///
  /// `quietZone` is the width of the light margin, in modules. If the number of rows is odd, the last line has a light
  /// lower half.
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
