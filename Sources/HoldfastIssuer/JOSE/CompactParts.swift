import HoldfastCore
import HoldfastOpenSSL

/// A compact serialisation split at its dots.
///
/// Source: RFC 7515 §7.1, RFC 7516 §7.1.
struct CompactParts: ~Escapable {
  private let text: Span<UInt8>
  private let dots: [Int]

  /// `malformed` unless there are exactly `count` parts.
  @_lifetime(copy text)
  init(_ text: Span<UInt8>, count: Int) throws(JOSEFault) {
    var dots: [Int] = []
    for index in text.indices where text[index] == UInt8(ascii: ".") {
      guard dots.count < count else { throw .malformed }
      dots.append(index)
    }
    guard dots.count == count - 1 else { throw .malformed }
    self.text = text
    self.dots = dots
  }

  subscript(part: Int) -> Span<UInt8> {
    @_lifetime(copy self)
    get {
      let start = part == 0 ? 0 : dots[part - 1] + 1
      return text.extracting(start..<(part == dots.count ? text.count : dots[part]))
    }
  }

  /// Everything before the last dot: what a JWS signs.
  var signingInput: Span<UInt8> {
    @_lifetime(copy self)
    get { text.extracting(0..<dots[dots.count - 1]) }
  }
}

/// The bytes of one part, which may be secret.
func decodePart(_ part: Span<UInt8>) throws(JOSEFault) -> SecretBytes {
  do throws(EncodingFault) { return try decodeBase64URL(part) } catch { throw JOSEFault(error) }
}
