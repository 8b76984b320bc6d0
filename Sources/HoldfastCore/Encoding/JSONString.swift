/// A JSON string as it is written between its quotation marks, with its escapes.
///
/// Source: RFC 8259 §7. Comparing and reading resolve the escapes on the way, and copy nothing unless the caller asks
/// for a copy. Timing: copying reveals where escapes are, and nothing about other characters.
package struct JSONString: ~Escapable {
  private let raw: Span<UInt8>

  /// Takes text that ``JSONReader`` has checked: valid UTF-8, valid escapes.
  @_lifetime(copy raw)
  init(checked raw: Span<UInt8>) {
    self.raw = raw
  }

  /// Appends the unescaped UTF-8 bytes to `buffer`. Throws `tooLong` if they do not fit.
  package func unescape<let capacity: Int>(into buffer: inout ByteBuffer<capacity>) throws(EncodingFault) {
    var cursor = Cursor()
    while let byte = cursor.next(in: raw) { try buffer.append(byte) }
  }

  /// Returns whether the unescaped string equals `text`.
  package func equals(_ text: StaticString) -> Bool {
    var cursor = Cursor()
    for index in 0..<text.utf8CodeUnitCount {
      guard let byte = cursor.next(in: raw), unsafe byte == text.utf8Start[index] else { return false }
    }
    return cursor.next(in: raw) == nil
  }

  /// Returns whether both unescaped strings are equal.
  func equals(_ other: borrowing JSONString) -> Bool {
    var cursor = Cursor()
    var otherCursor = Cursor()
    while true {
      let byte = cursor.next(in: raw)
      guard byte == otherCursor.next(in: other.raw) else { return false }
      if byte == nil { return true }
    }
  }

  /// Returns the unescaped text; nil if it is longer than `capacity` bytes.
  package func bounded<let capacity: Int>() -> BoundedText<capacity>? {
    var buffer = ByteBuffer<capacity>()
    do throws(EncodingFault) { try unescape(into: &buffer) } catch { return nil }
    return BoundedText(buffer.bytes)
  }

  /// Decodes exactly `count` bytes, at most 72, from base64url without padding.
  ///
  /// - Throws: `malformed` if it is not base64url, `unexpected` for another number of bytes, `tooLong` above 96
  ///   characters.
  package func base64URLBytes<Kind, let count: Int>() throws(EncodingFault) -> TypedBytes<Kind, count> {
    var text = ByteBuffer<96>()
    try unescape(into: &text)
    var bytes = ByteBuffer<72>()
    try bytes.append(base64URL: text.bytes)
    guard let fixed = TypedBytes<Kind, count>(bytes.bytes) else { throw .unexpected }
    return fixed
  }

  /// Decodes exactly `count` secret bytes, at most 72, from padded standard base64.
  ///
  /// - Throws: `malformed` if it is not base64, `unexpected` for another number of bytes, `tooLong` above 96
  ///   characters.
  package func paddedBase64Secret<let count: Int>() throws(EncodingFault) -> Secret<count> {
    var secret = Secret<count>()
    try read(paddedBase64: &secret)
    return secret
  }

  /// Decodes padded standard base64 over the bytes of `secret`, in place.
  func read<let count: Int>(paddedBase64 secret: inout Secret<count>) throws(EncodingFault) {
    var text = ByteBuffer<96>()
    try unescape(into: &text)
    var bytes = ByteBuffer<72>()
    try bytes.append(paddedBase64: text.bytes)
    try secret.set(bytes.bytes)
  }
}

extension JSONString {
  /// A position in the unescaped bytes.
  private struct Cursor {
    var position = 0
    /// The UTF-8 bytes of an escaped character that are still to be returned, the next one lowest.
    var queued: UInt32 = 0

    mutating func next(in raw: Span<UInt8>) -> UInt8? {
      if queued != 0 {
        defer { queued >>= 8 }
        return UInt8(truncatingIfNeeded: queued)
      }
      guard position < raw.count else { return nil }
      let byte = raw[position]
      guard isCharacter(byte, 0x5c), let escape = JSONEscape(raw, at: position) else {
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

/// An escape of a JSON string: `\n`, `\u00e9`, or a surrogate pair.
///
/// Source: RFC 8259 §7.
struct JSONEscape {
  /// The length of the escape in the text, in bytes: 2, 6 or 12.
  let length: Int
  /// The character that the escape represents.
  let scalar: UInt32

  /// Reads the escape whose backslash is at `index`; nil if it is not valid.
  init?(_ text: Span<UInt8>, at index: Int) {
    guard text.count - index >= 2 else { return nil }
    if text[index + 1] != 0x75 {
      guard let scalar = Self.short(text[index + 1]) else { return nil }
      (length, self.scalar) = (2, scalar)
      return
    }
    guard let unit = Self.codeUnit(text, at: index) else { return nil }
    switch unit {
    case 0xd800...0xdbff:
      guard let low = Self.codeUnit(text, at: index + 6), 0xdc00...0xdfff ~= low else { return nil }
      (length, scalar) = (12, 0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00))
    case 0xdc00...0xdfff:
      return nil
    default:
      (length, scalar) = (6, unit)
    }
  }

  /// The UTF-8 bytes of a character from U+0080 on, the first one lowest.
  var utf8: UInt32 {
    let last = 0x80 | scalar & 0x3f
    let third = 0x80 | scalar >> 6 & 0x3f
    let second = 0x80 | scalar >> 12 & 0x3f
    switch scalar {
    case ..<0x800: return 0xc0 | scalar >> 6 | last << 8
    case ..<0x10000: return 0xe0 | scalar >> 12 | third << 8 | last << 16
    default: return 0xf0 | scalar >> 18 | second << 8 | third << 16 | last << 24
    }
  }

  private static func short(_ character: UInt8) -> UInt32? {
    switch character {
    case 0x22, 0x5c, 0x2f: UInt32(character)
    case 0x62: 0x08
    case 0x66: 0x0c
    case 0x6e: 0x0a
    case 0x72: 0x0d
    case 0x74: 0x09
    default: nil
    }
  }

  private static func codeUnit(_ text: Span<UInt8>, at index: Int) -> UInt32? {
    guard text.count - index >= 6, text[index] == 0x5c, text[index + 1] == 0x75 else { return nil }
    var unit: UInt32 = 0
    for offset in 2..<6 {
      guard let digit = hexadecimalValue(text[index + offset]) else { return nil }
      unit = unit << 4 | UInt32(digit)
    }
    return unit
  }
}

/// Returns the value of a hexadecimal digit of either case; nil for any other character.
///
/// Timing: it depends on the digit.
package func hexadecimalValue(_ digit: UInt8) -> UInt8? {
  switch digit {
  case 0x30...0x39: digit - 0x30
  case 0x41...0x46: digit - 0x41 + 10
  case 0x61...0x66: digit - 0x61 + 10
  default: nil
  }
}
