import HoldfastCore

/// Reads one message of Protocol Buffers, field by field, out of bytes that are not trusted.
///
/// Source: protobuf.dev, "Encoding". `malformed` for a truncated field, a number of more than 64 bits, field number 0 or above
/// 2^29 - 1, and groups, which nobody writes.
struct ProtobufReader: ~Escapable {
  private let bytes: Span<UInt8>
  private var position = 0

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  /// One field of a message.
  struct Field {
    let number: UInt64
    let value: Value
  }

  enum Value {
    case varint(UInt64)
    /// Where the bytes are, of a text, of bytes or of a message.
    case bytes(Range<Int>)
    /// 4 or 8 bytes, of which nothing here makes use.
    case fixed
  }

  /// The next field; nil at the end.
  mutating func next() throws(ImportFault) -> Field? {
    guard position < bytes.count else { return nil }
    let key = try varint()
    let number = key >> 3
    guard (1..<1 << 29).contains(number) else { throw .malformed }
    switch key & 7 {
    case 0: return Field(number: number, value: .varint(try varint()))
    case 1: return try skip(8, number)
    case 2:
      let count = try varint()
      guard count <= UInt64(bytes.count - position) else { throw .malformed }
      let start = position
      position += Int(count)
      return Field(number: number, value: .bytes(start..<position))
    case 5: return try skip(4, number)
    default: throw .malformed
    }
  }

  private mutating func skip(_ count: Int, _ number: UInt64) throws(ImportFault) -> Field {
    guard count <= bytes.count - position else { throw .malformed }
    position += count
    return Field(number: number, value: .fixed)
  }

  private mutating func varint() throws(ImportFault) -> UInt64 {
    var value: UInt64 = 0
    for index in 0..<10 {
      guard position < bytes.count else { throw .malformed }
      let byte = bytes[position]
      position += 1
      guard index < 9 || byte <= 1 else { throw .malformed }
      value |= UInt64(byte & 0x7f) << UInt64(7 * index)
      if byte < 0x80 { return value }
    }
    throw .malformed
  }
}
