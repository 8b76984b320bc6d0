import CQREncode
import HoldfastCore
import HoldfastOpenSSL

/// Why a QR code was not made.
public enum QRCodeFault: Error, Equatable, Sendable {
  /// Nothing to encode.
  case empty
  /// More than the largest symbol holds: 2,331 bytes.
  case tooLong
}

/// A QR code, which shows a secret as well as the text that is in it does.
///
/// Source: ISO/IEC 18004. Error correction level M. What libqrencode itself works on is freed without being wiped.
public struct QRCode: ~Copyable, Sendable {
  /// The modules of a side, 21 to 177.
  public let width: Int
  /// One byte a module, row by row: 1 is dark.
  private let modules: SecretBytes

  public init(encoding text: Span<UInt8>) throws(QRCodeFault) {
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
  public func isDark(row: Int, column: Int) -> Bool {
    guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
    return modules.bytes[row * width + column] == 1
  }
}
