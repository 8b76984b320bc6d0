import HoldfastCore

/// Returns public bytes as lower-case hexadecimal digits.
package func hexadecimal<let count: Int>(_ bytes: FixedBytes<count>) -> String {
  hexadecimal(bytes.bytes)
}

/// Returns public bytes as lower-case hexadecimal digits.
package func hexadecimal(_ bytes: Span<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  for index in bytes.indices {
    text.append(digits[Int(bytes[index] >> 4)])
    text.append(digits[Int(bytes[index] & 0x0f)])
  }
  return String(decoding: text, as: UTF8.self)
}

/// Returns exactly `count` bytes from lower-case hexadecimal digits; nil for any other text.
package func fixedBytes<let count: Int>(hexadecimal text: String) -> FixedBytes<count>? {
  guard text.utf8.count == 2 * count else { return nil }
  var bytes = FixedBytes<count>()
  for (index, digit) in text.utf8.enumerated() {
    let value: UInt8
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
    default: return nil
    }
    bytes[index / 2] = bytes[index / 2] << 4 | value
  }
  return bytes
}
