import HoldfastCore
import HoldfastOpenSSL

extension SecretBytes {
  /// Decodes padded standard base64.
  ///
  /// Source: RFC 4648 §4. `malformed` for missing padding, other characters or trailing bits that are not zero. Timing: depends
  /// on the count of characters alone.
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
