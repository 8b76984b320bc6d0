/// What a device was asked with, or asks: 16 hexadecimal digits.
public struct DeviceChallenge: Sendable, Equatable {
  /// In small letters.
  public let digits: String

  /// Nil for anything but 16 hexadecimal digits, large or small.
  public init?(_ text: String) {
    guard text.utf8.count == 16 else { return nil }
    var digits = ""
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x61...0x66: digits.unicodeScalars.append(Unicode.Scalar(byte))
      case 0x41...0x46: digits.unicodeScalars.append(Unicode.Scalar(byte + 0x20))
      default: return nil
      }
    }
    self.digits = digits
  }
}
