/// Methods that write deterministic CBOR, item by item.
///
/// Source: RFC 8949 §4.2.1. The caller writes map pairs in the order of their encoded labels.
extension ByteSink where Self: ~Copyable {
  /// Writes an unsigned integer (major type 0).
  package mutating func appendCBOR(unsigned value: UInt64) throws(Failure) {
    try appendHead(.unsigned, value)
  }

  /// Writes an integer of either sign (major types 0 and 1).
  package mutating func appendCBOR(integer value: Int64) throws(Failure) {
    if value < 0 {
      try appendHead(.negative, UInt64(-1 - value))
    } else {
      try appendHead(.unsigned, UInt64(value))
    }
  }

  /// Writes a byte string (major type 2).
  package mutating func appendCBOR(bytes: Span<UInt8>) throws(Failure) {
    try appendHead(.bytes, UInt64(bytes.count))
    try append(bytes)
  }

  /// Writes the head of a byte string whose `count` bytes the caller appends.
  package mutating func appendCBOR(byteStringHead count: Int) throws(Failure) {
    try appendHead(.bytes, UInt64(count))
  }

  /// Writes a text string (major type 3) from valid UTF-8.
  package mutating func appendCBOR(text: Span<UInt8>) throws(Failure) {
    try appendHead(.text, UInt64(text.count))
    try append(text)
  }

  /// Writes a text string (major type 3).
  package mutating func appendCBOR(text: StaticString) throws(Failure) {
    try appendHead(.text, UInt64(text.utf8CodeUnitCount))
    try append(text)
  }

  /// Writes the head of an array of `count` elements (major type 4).
  package mutating func appendCBOR(array count: Int) throws(Failure) {
    try appendHead(.array, UInt64(count))
  }

  /// Writes the head of a map of `count` pairs (major type 5).
  package mutating func appendCBOR(map count: Int) throws(Failure) {
    try appendHead(.map, UInt64(count))
  }

  /// Writes a tag (major type 6).
  package mutating func appendCBOR(tag: UInt64) throws(Failure) {
    try appendHead(.tag, tag)
  }

  /// Writes null.
  package mutating func appendCBORNull() throws(Failure) {
    try append(0xf6)
  }

  private mutating func appendHead(_ major: CBORMajorType, _ value: UInt64) throws(Failure) {
    guard value >= 24 else { return try append(major.rawValue << 5 | UInt8(value)) }
    let head = CBORHead(major, value)
    try append(head.bytes.span.extracting(first: head.count))
  }
}

extension ByteBuffer {
  /// Turns the bytes that were appended from `start` on into one byte string (major type 2).
  package mutating func wrapCBOR(from start: Int) throws(EncodingFault) {
    let wrapped = count - start
    let head = CBORHead(.bytes, UInt64(wrapped))
    try appendZeros(head.count)
    unsafe head.insert(at: storage.start + start, moving: wrapped)
  }
}

/// The head of a CBOR item: a type, and its argument in the fewest bytes. It is the first `count` of `bytes`.
private struct CBORHead {
  let bytes: InlineArray<9, UInt8>
  let count: Int

  @inline(never)
  init(_ major: CBORMajorType, _ value: UInt64) {
    let (width, low): (Int, UInt8) =
      switch value {
      case 0..<24: (0, UInt8(value))
      case 24..<1 << 8: (1, 24)
      case 1 << 8..<1 << 16: (2, 25)
      case 1 << 16..<1 << 32: (4, 26)
      default: (8, 27)
      }
    var bytes = InlineArray<9, UInt8>(repeating: major.rawValue << 5 | low)
    if width > 0 {
      let argument = bigEndianBytes(value)
      for index in 0..<width { bytes[1 + index] = argument[8 - width + index] }
    }
    self.bytes = bytes
    count = 1 + width
  }

  /// Writes the head at `start`, and moves the `byteCount` bytes from there on to make room for it. Behind them, `count` bytes must
  /// be free.
  @inline(never)
  func insert(at start: UnsafeMutablePointer<UInt8>, moving byteCount: Int) {
    unsafe UnsafeMutableRawPointer(start + count).copyMemory(from: start, byteCount: byteCount)
    for index in 0..<count { unsafe start[index] = bytes[index] }
  }
}
