import HoldfastCore
import HoldfastOpenSSL

/// Returns public bytes as lower-case hexadecimal digits.
package func hexadecimal<Kind, let count: Int>(_ bytes: TypedBytes<Kind, count>) -> String {
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

/// Returns public bytes as lower-case hexadecimal digits.
package func hexadecimal<let capacity: Int>(_ bytes: borrowing ByteBuffer<capacity>) -> String {
  hexadecimal(bytes.bytes)
}

/// Returns exactly `count` bytes from lower-case hexadecimal digits; nil for any other text.
package func fixedBytes<Kind, let count: Int>(hexadecimal text: String) -> TypedBytes<Kind, count>? {
  guard text.utf8.count == 2 * count else { return nil }
  var bytes = TypedBytes<Kind, count>()
  for (index, digit) in text.utf8.enumerated() {
    guard !(0x41...0x46 ~= digit), let value = hexadecimalValue(digit) else { return nil }
    bytes[index / 2] = bytes[index / 2] << 4 | value
  }
  return bytes
}

/// Returns bytes as base64 with padding, in a time that depends on nothing but their number (RFC 4648 §4).
package func paddedBase64(_ bytes: Span<UInt8>) -> String {
  var text: [UInt8] = []
  text.append(asPaddedBase64: bytes)
  return String(decoding: text, as: UTF8.self)
}

/// Returns bytes as base64 with padding, likewise.
package func paddedBase64(_ bytes: [UInt8]) -> String { paddedBase64(bytes.span) }

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
  return [UInt8](bytes.bytes)
}

/// Decodes base64url text without padding, of any length. The bytes are public.
package func decodePublicBase64URL(_ text: Span<UInt8>) throws(EncodingFault) -> [UInt8] {
  try decodeInParts(text) { (part, buffer, _) throws(EncodingFault) in try buffer.append(base64URL: part) }
}

/// Decodes padded standard base64 text, of any length. The bytes are public.
package func decodePublicPaddedBase64(_ text: String) throws(EncodingFault) -> [UInt8] {
  let characters = Array(text.utf8)
  return try decodeInParts(characters.span) { (part, buffer, isLast) throws(EncodingFault) in
    // Padding ends the text.
    guard isLast || part[part.count - 1] != UInt8(ascii: "=") else { throw .malformed }
    try buffer.append(paddedBase64: part)
  }
}

/// Decodes base64 in parts of whole groups of four characters.
private func decodeInParts(
  _ text: Span<UInt8>,
  _ decode: (_ part: Span<UInt8>, _ buffer: inout ByteBuffer<3072>, _ isLast: Bool) throws(EncodingFault) -> Void
) throws(EncodingFault) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(text.count * 3 / 4)
  for start in stride(from: 0, to: text.count, by: 4096) {
    let end = min(start + 4096, text.count)
    var buffer = ByteBuffer<3072>()
    try decode(text.extracting(start..<end), &buffer, end == text.count)
    bytes.append(buffer.bytes)
  }
  return bytes
}

extension TypedBytes: CustomStringConvertible {
  /// The bytes as hexadecimal digits.
  public var description: String { hexadecimal(self) }
}

extension AppVersion {
  /// The version as three numbers with dots between them.
  package var text: String { "\(major).\(minor).\(patch)" }

  /// Reads three numbers of at most 2^53 - 1 with dots between them; nil if the text is anything else.
  package init?(parsing text: String) {
    let numbers = text.split(separator: ".", omittingEmptySubsequences: false).map { part in
      part.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? UInt64(part) : nil
    }
    guard numbers.count == 3, let major = numbers[0], let minor = numbers[1], let patch = numbers[2],
      max(major, minor, patch) <= maximumInteger
    else { return nil }
    self.init(major: major, minor: minor, patch: patch)
  }
}
