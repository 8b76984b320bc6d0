import HoldfastCore
import HoldfastOpenSSL

extension SecretBuffer {
  /// Returns a copy without white space.
  package func withoutWhitespace() -> SecretBuffer {
    var copy = SecretBuffer(capacity: count)
    let bytes = bytes
    for index in bytes.indices where !isWhitespace(bytes[index]) { copy.append(bytes[index]) }
    return copy
  }

  /// Returns the text without white space at both ends.
  ///
  /// - Throws: `invalidName` if the text is not UTF-8.
  package func trimmedText() throws(ImportFault) -> String {
    let bytes = bytes
    var (start, end) = (0, count)
    while start < end, isWhitespace(bytes[start]) { start += 1 }
    while start < end, isWhitespace(bytes[end - 1]) { end -= 1 }
    return try String(checking: bytes.extracting(start..<end))
  }
}

/// Returns whether `text` is displayed as it is: without control characters, line separators, invisible characters or
/// characters that change the direction of text.
///
/// A joiner (U+200D) is allowed, because names in several scripts and emoji contain it.
func isPlainText(_ text: String) -> Bool {
  text.unicodeScalars.allSatisfy { scalar in
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: false
    case .format: scalar.value == 0x200d
    default: true
    }
  }
}

extension String {
  /// Creates a string from UTF-8 bytes.
  ///
  /// - Throws: `invalidName` if the bytes are not UTF-8.
  init(checking bytes: Span<UInt8>) throws(ImportFault) {
    guard let text = String(validating: [UInt8](bytes), as: UTF8.self) else { throw .invalidName }
    self = text
  }
}

extension UInt64 {
  /// Reads a decimal number without sign or leading zeros; nil for anything else and above 2^53 - 1.
  init?(decimal bytes: Span<UInt8>) {
    guard (1...16).contains(bytes.count), bytes.count == 1 || bytes[0] != 0x30 else { return nil }
    var value: UInt64 = 0
    for index in bytes.indices {
      guard (0x30...0x39).contains(bytes[index]) else { return nil }
      value = value * 10 + UInt64(bytes[index] - 0x30)
    }
    guard value <= Credential.maximumCounter else { return nil }
    self = value
  }
}

extension SecretBytes {
  /// Decodes padded standard base64.
  ///
  /// Source: RFC 4648 §4. Timing: depends only on the number of characters.
  ///
  /// - Throws: `malformed` for missing padding, other characters or trailing bits that are not zero.
  init(paddedBase64 text: Span<UInt8>) throws(EncodingFault) {
    var decoded = SecretBuffer(capacity: text.count / 4 * 3)
    var start = 0
    while start < text.count {
      let end = min(start + 64, text.count)
      var chunk = ByteBuffer<48>()
      try chunk.append(paddedBase64: text.extracting(start..<end))
      guard end == text.count || chunk.count == 48 else { throw .malformed }
      decoded.append(chunk.bytes)
      start = end
    }
    self.init(copying: decoded.bytes)
  }
}
