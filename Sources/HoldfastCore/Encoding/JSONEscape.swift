/// One escape of a JSON string: `\n`, `\u00e9`, or a surrogate pair.
///
/// Source: RFC 8259 §7.
struct JSONEscape {
  /// How many bytes it takes in the text: 2, 6 or 12.
  let length: Int
  /// The character that it stands for.
  let scalar: UInt32

  /// Reads the escape whose backslash is at `index`; nil when it is none.
  init?(_ text: Span<UInt8>, at index: Int) {
    guard text.count - index >= 2 else { return nil }
    if text[index + 1] != 0x75 {
      guard let scalar = Self.short(text[index + 1]) else { return nil }
      (length, self.scalar) = (2, scalar)
      return
    }
    guard let unit = Self.codeUnit(text, at: index) else { return nil }
    switch unit {
    case 0xd800...0xdbff:
      guard let low = Self.codeUnit(text, at: index + 6), 0xdc00...0xdfff ~= low else { return nil }
      (length, scalar) = (12, 0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00))
    case 0xdc00...0xdfff:
      return nil
    default:
      (length, scalar) = (6, unit)
    }
  }

  /// The UTF-8 bytes of a character from U+0080 on, the first one lowest.
  var utf8: UInt32 {
    let last = 0x80 | scalar & 0x3f
    let third = 0x80 | scalar >> 6 & 0x3f
    let second = 0x80 | scalar >> 12 & 0x3f
    switch scalar {
    case ..<0x800: return 0xc0 | scalar >> 6 | last << 8
    case ..<0x10000: return 0xe0 | scalar >> 12 | third << 8 | last << 16
    default: return 0xf0 | scalar >> 18 | second << 8 | third << 16 | last << 24
    }
  }

  private static func short(_ character: UInt8) -> UInt32? {
    switch character {
    case 0x22, 0x5c, 0x2f: UInt32(character)
    case 0x62: 0x08
    case 0x66: 0x0c
    case 0x6e: 0x0a
    case 0x72: 0x0d
    case 0x74: 0x09
    default: nil
    }
  }

  private static func codeUnit(_ text: Span<UInt8>, at index: Int) -> UInt32? {
    guard text.count - index >= 6, text[index] == 0x5c, text[index + 1] == 0x75 else { return nil }
    var unit: UInt32 = 0
    for offset in 2..<6 {
      guard let digit = hexadecimalDigit(text[index + offset]) else { return nil }
      unit = unit << 4 | digit
    }
    return unit
  }

  private static func hexadecimalDigit(_ character: UInt8) -> UInt32? {
    switch character {
    case 0x30...0x39: UInt32(character) - 0x30
    case 0x41...0x46: UInt32(character) - 0x41 + 10
    case 0x61...0x66: UInt32(character) - 0x61 + 10
    default: nil
    }
  }
}
