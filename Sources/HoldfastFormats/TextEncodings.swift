import HoldfastCore
import HoldfastOpenSSL

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

/// Returns public bytes as base64url text without padding.
package func base64URL(_ bytes: Span<UInt8>) -> String {
  var text: [UInt8] = []
  text.append(asBase64URL: bytes)
  return String(decoding: text, as: UTF8.self)
}

/// Decodes base64url text without padding, at most 6144 bytes, which may be secret.
package func decodeBase64URL(_ text: Span<UInt8>) throws(EncodingFault) -> SecretBytes {
  var buffer = ByteBuffer<6144>()
  try buffer.append(base64URL: text)
  return SecretBytes(copying: buffer.bytes)
}

/// Decodes base64url text without padding. The bytes are public.
package func decodePublicBase64URL(_ text: String) throws(EncodingFault) -> [UInt8] {
  let utf8 = Array(text.utf8)
  let bytes = try decodeBase64URL(utf8.span)
  return [UInt8](copying: bytes.bytes)
}

extension Array where Element == UInt8 {
  /// Copies `bytes`, which are not secret.
  package init(copying bytes: Span<UInt8>) {
    self.init()
    append(bytes)
  }
}
