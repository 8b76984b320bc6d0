/// A compact serialisation split at its dots. The spans point into the token.
///
/// Source: RFC 7515 §7.1, RFC 7516 §7.1.
struct CompactJOSE<let count: Int>: ~Escapable {
  private let text: Span<UInt8>
  /// Where each part ends: at its dot, the last one at the end of the text.
  private let ends: InlineArray<count, Int>

  /// `malformed` unless there are exactly `count` parts.
  @_lifetime(copy text)
  init(_ text: Span<UInt8>) throws(EncodingFault) {
    var ends = InlineArray<count, Int>(repeating: text.count)
    var part = 0
    for index in text.indices where text[index] == 0x2e {
      guard part < count - 1 else { throw .malformed }
      ends[part] = index
      part += 1
    }
    guard part == count - 1 else { throw .malformed }
    self.text = text
    self.ends = ends
  }

  subscript(part: Int) -> Span<UInt8> {
    @_lifetime(copy self)
    get { text.extracting((part == 0 ? 0 : ends[part - 1] + 1)..<ends[part]) }
  }

  /// Everything before the last dot: what a JWS signs.
  var signingInput: Span<UInt8> {
    @_lifetime(copy self)
    get { text.extracting(0..<ends[count - 2]) }
  }
}
