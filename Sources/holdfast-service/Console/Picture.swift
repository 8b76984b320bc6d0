#if Service
import HoldfastCore
import HoldfastQRCode

/// A QR code as a path of SVG.
struct PictureView {
  /// The side of the picture in modules, with the light margin.
  let side: Int
  /// A rectangle for each run of dark modules.
  let path: String

  /// Draws a text; nil if it is too long.
  init?(_ text: String) {
    let bytes = Array(text.utf8)
    let code: QRCode
    do throws(QRCodeFault) { code = try QRCode(encoding: bytes.span) } catch { return nil }
    let margin = QRCode.usualQuietZone
    var path = ""
    for row in 0..<code.width {
      var column = 0
      while column < code.width {
        let start = column
        while code.isDark(row: row, column: column) { column += 1 }
        if column > start { path += "M\(start + margin) \(row + margin)h\(column - start)v1h-\(column - start)z" }
        column += 1
      }
    }
    (side, self.path) = (code.width + 2 * margin, path)
  }
}
#endif
