import HoldfastCore
import HoldfastOpenSSL

/// Decodes each `%XX` in `text`.
///
/// Source: RFC 3986 §2.1. A plus sign remains a plus sign. Timing: reveals the positions of the percent signs.
///
/// - Throws: `malformed` for a percent sign without two hexadecimal digits.
func percentDecoded(_ text: Span<UInt8>) throws(ImportFault) -> SecretBuffer {
  var decoded = SecretBuffer(capacity: text.count)
  var index = 0
  while index < text.count {
    guard text[index] == 0x25 else {
      decoded.append(text[index])
      index += 1
      continue
    }
    guard index + 2 < text.count, let byte = hexadecimalByte(text[index + 1], text[index + 2]) else {
      throw .malformed
    }
    decoded.append(byte)
    index += 3
  }
  return decoded
}

/// Decodes `encoded`, which has only the characters of a path or query, as UTF-8.
///
/// Source: RFC 3986 §3.3 and §3.4.
///
/// - Throws: `malformed` for other characters, `invalidName` if the result is not UTF-8.
func percentDecodedText(_ encoded: Span<UInt8>) throws(ImportFault) -> String {
  for index in encoded.indices where !isURICharacter(encoded[index]) { throw .malformed }
  let decoded = try percentDecoded(encoded)
  return try String(checking: decoded.bytes)
}

/// Whether `byte` is permitted in a path or query, or begins `%XX`.
private func isURICharacter(_ byte: UInt8) -> Bool {
  switch byte {
  case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true  // digits and letters
  case 0x21, 0x24...0x2f, 0x3a, 0x3b, 0x3d, 0x3f, 0x40, 0x5f, 0x7e: true  // ! $ % & ' ( ) * + , - . / : ; = ? @ _ ~
  default: false
  }
}

private func hexadecimalByte(_ high: UInt8, _ low: UInt8) -> UInt8? {
  guard let high = hexadecimalValue(high), let low = hexadecimalValue(low) else { return nil }
  return high << 4 | low
}

extension SecretBuffer {
  /// Appends `text`, with every character outside the unreserved set of RFC 3986 as `%XX`.
  package mutating func append(percentEncoding text: String) {
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: append(byte)
      default:
        append(0x25)
        for digit in [byte >> 4, byte & 0xf] { append(digit < 10 ? 0x30 + digit : 0x37 + digit) }
      }
    }
  }

  /// Appends a number in decimal digits.
  package mutating func append(decimal number: UInt64) {
    for byte in String(number).utf8 { append(byte) }
  }
}
