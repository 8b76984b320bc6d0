/// Crockford's base32: for what people read aloud and type. No look-ups or branches on what is encoded, which is secret.
///
/// Source: <https://www.crockford.com/base32.html>. Without his check symbol.
public enum CrockfordBase32 {
  /// The character of five bits: the digits, then the letters without I, L, O and U.
  public static func character(_ value: UInt8) -> UInt8 {
    let value = Int32(value)
    let code =
      0x30 + value + 7 * atLeast(10, value) + atLeast(18, value) + atLeast(20, value) + atLeast(22, value)
      + atLeast(27, value)
    return UInt8(truncatingIfNeeded: code)
  }

  /// The five bits of a character, small letters as large ones, O as 0, I and L as 1; 0x80 for any other.
  public static func value(_ character: UInt8) -> UInt8 {
    let isSmall = atLeast(0x61, Int32(character)) & (1 - atLeast(0x7b, Int32(character)))
    let character = character - UInt8(truncatingIfNeeded: isSmall << 5)
    var value: UInt8 = 0x80
    for candidate in UInt8(0)..<32 {
      value ^= equal(character, Self.character(candidate)) & (0x80 ^ candidate)
    }
    value ^= equal(character, UInt8(ascii: "O")) & (0x80 ^ 0)
    value ^= (equal(character, UInt8(ascii: "I")) | equal(character, UInt8(ascii: "L"))) & (0x80 ^ 1)
    return value
  }

  /// 1 when `value` is at least `least`, otherwise 0.
  private static func atLeast(_ least: Int32, _ value: Int32) -> Int32 {
    1 &+ ((value &- least) >> 31)
  }

  /// All ones when both are the same, otherwise 0.
  private static func equal(_ left: UInt8, _ right: UInt8) -> UInt8 {
    UInt8(truncatingIfNeeded: (Int32(left ^ right) &- 1) >> 31)
  }
}
