/// A JSON string as it stands between its quotation marks, escapes and all.
///
/// Source: RFC 8259 §7. Comparing and reading unescape on the way; nothing is copied until asked for.
public struct JSONString: ~Escapable {
  private let raw: Span<UInt8>

  /// `raw` was checked by ``JSONReader``: valid UTF-8, valid escapes.
  @_lifetime(copy raw)
  init(checked raw: Span<UInt8>) {
    self.raw = raw
  }

  /// Appends the unescaped UTF-8 bytes to `buffer`.
  public func unescape<let capacity: Int>(into buffer: inout ByteBuffer<capacity>) throws(EncodingFault) {
    var cursor = Cursor()
    while let byte = cursor.next(in: raw) { try buffer.append(byte) }
  }

  /// Whether it reads as `text` once unescaped.
  public func equals(_ text: StaticString) -> Bool {
    var cursor = Cursor()
    for index in 0..<text.utf8CodeUnitCount {
      guard let byte = cursor.next(in: raw), unsafe byte == text.utf8Start[index] else { return false }
    }
    return cursor.next(in: raw) == nil
  }

  /// Whether both read the same once unescaped.
  func equals(_ other: borrowing JSONString) -> Bool {
    var cursor = Cursor()
    var otherCursor = Cursor()
    while true {
      let byte = cursor.next(in: raw)
      guard byte == otherCursor.next(in: other.raw) else { return false }
      if byte == nil { return true }
    }
  }

  /// The unescaped text; nil when it is longer than `capacity` bytes.
  public func bounded<let capacity: Int>() -> BoundedText<capacity>? {
    var buffer = ByteBuffer<capacity>()
    do throws(EncodingFault) { try unescape(into: &buffer) } catch { return nil }
    return BoundedText(buffer.bytes)
  }

  /// Exactly `count` bytes from base64url without padding.
  public func base64URLBytes<let count: Int>() throws(EncodingFault) -> FixedBytes<count> {
    var text = ByteBuffer<96>()
    try unescape(into: &text)
    var bytes = ByteBuffer<72>()
    try bytes.append(base64URL: text.bytes)
    guard let fixed = FixedBytes<count>(bytes.bytes) else { throw .unexpected }
    return fixed
  }

  /// Exactly `count` secret bytes from padded standard base64.
  public func paddedBase64Secret<let count: Int>() throws(EncodingFault) -> Secret<count> {
    var secret = Secret<count>()
    try read(paddedBase64: &secret)
    return secret
  }

  /// The same, where they are to stay.
  func read<let count: Int>(paddedBase64 secret: inout Secret<count>) throws(EncodingFault) {
    var text = ByteBuffer<96>()
    try unescape(into: &text)
    var bytes = ByteBuffer<72>()
    try bytes.append(paddedBase64: text.bytes)
    try secret.set(bytes.bytes)
  }
}

extension JSONString {
  /// Walks over the unescaped bytes.
  private struct Cursor {
    var position = 0
    /// UTF-8 bytes of an escaped character that are still to be given, the next one lowest.
    var queued: UInt32 = 0

    mutating func next(in raw: Span<UInt8>) -> UInt8? {
      if queued != 0 {
        defer { queued >>= 8 }
        return UInt8(truncatingIfNeeded: queued)
      }
      guard position < raw.count else { return nil }
      let byte = raw[position]
      guard byte == 0x5c, let escape = JSONEscape(raw, at: position) else {
        position += 1
        return byte
      }
      position += escape.length
      guard escape.scalar >= 0x80 else { return UInt8(escape.scalar) }
      queued = escape.utf8
      return next(in: raw)
    }
  }
}
