/// A reader of deterministic CBOR. It refuses any other bytes and copies nothing.
///
/// Source: RFC 8949 §4.2.1, with integers and lengths of at most 2^53 - 1 and without floats. The spans that it returns
/// point into the bytes that it was created with. Its methods throw `malformed` for bytes that are not such CBOR, and
/// `unexpected` for an item of another type.
public struct CBORReader: ~Escapable {
  private let bytes: Span<UInt8>
  /// The number of bytes that were read.
  package private(set) var position = 0

  /// Creates a reader at the start of `bytes`.
  @_lifetime(copy bytes)
  package init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  /// Reads an unsigned integer (major type 0).
  package mutating func unsigned() throws(EncodingFault) -> UInt64 {
    try argument(of: .unsigned)
  }

  /// Reads an integer of either sign (major types 0 and 1).
  package mutating func integer() throws(EncodingFault) -> Int64 {
    let (major, value) = try head()
    switch major {
    case .unsigned: return Int64(value)
    case .negative: return -1 - Int64(value)
    default: throw .unexpected
    }
  }

  /// Reads a byte string (major type 2).
  @_lifetime(copy self)
  package mutating func byteString() throws(EncodingFault) -> Span<UInt8> {
    try take(argument(of: .bytes))
  }

  /// Reads a byte string of exactly `count` bytes. Throws `unexpected` for any other length.
  package mutating func fixedBytes<Kind, let count: Int>() throws(EncodingFault) -> TypedBytes<Kind, count> {
    guard let fixed = TypedBytes<Kind, count>(try byteString()) else { throw .unexpected }
    return fixed
  }

  /// Reads a text string (major type 3) and returns its bytes, which are valid UTF-8.
  @_lifetime(copy self)
  package mutating func textString() throws(EncodingFault) -> Span<UInt8> {
    let text = try take(argument(of: .text))
    guard isValidUTF8(text) else { throw .malformed }
    return text
  }

  /// Reads the head of an array (major type 4) and returns the number of elements that follow.
  package mutating func arrayHead() throws(EncodingFault) -> Int {
    Int(clamping: try argument(of: .array))
  }

  /// Reads the head of an array that must have exactly `count` elements. Throws `unexpected` for any other number.
  package mutating func array(of count: Int) throws(EncodingFault) {
    guard try arrayHead() == count else { throw .unexpected }
  }

  /// Reads the head of a map (major type 5) and returns the number of pairs that follow.
  package mutating func mapHead() throws(EncodingFault) -> Int {
    Int(clamping: try argument(of: .map))
  }

  /// Reads a tag (major type 6) and returns its number.
  package mutating func tag() throws(EncodingFault) -> UInt64 {
    try argument(of: .tag)
  }

  /// Reads a tag. Throws `unexpected` unless it is `expected`.
  package mutating func tag(_ expected: UInt64) throws(EncodingFault) {
    guard try tag() == expected else { throw .unexpected }
  }

  /// Reads null if it is next, and returns whether it was.
  package mutating func null() -> Bool {
    guard position < bytes.count, bytes[position] == 0xf6 else { return false }
    position += 1
    return true
  }

  /// Returns the major type of the next item, which is left unread.
  package func nextMajorType() throws(EncodingFault) -> CBORMajorType {
    guard position < bytes.count else { throw .malformed }
    return CBORMajorType(of: bytes[position])
  }

  /// Skips false, true or null. Throws `malformed` for any other simple value (major type 7).
  mutating func simpleValue() throws(EncodingFault) {
    guard (20...22).contains(try argument(of: .simple)) else { throw .malformed }
  }

  /// Returns a byte that was read already.
  func byte(at position: Int) -> UInt8 { bytes[position] }

  /// Ends the reading. Throws `malformed` if a byte is left.
  package func finish() throws(EncodingFault) {
    guard position == bytes.count else { throw .malformed }
  }

  private mutating func argument(of expected: CBORMajorType) throws(EncodingFault) -> UInt64 {
    let (major, value) = try head()
    guard major == expected else { throw .unexpected }
    return value
  }

  @_lifetime(copy self)
  private mutating func take(_ count: UInt64) throws(EncodingFault) -> Span<UInt8> {
    guard count <= UInt64(bytes.count - position) else { throw .malformed }
    let start = position
    position += Int(count)
    return bytes.extracting(start..<position)
  }

  @inline(never)
  private mutating func head() throws(EncodingFault) -> (CBORMajorType, UInt64) {
    guard position < bytes.count else { throw .malformed }
    let initial = bytes[position]
    position += 1
    let major = CBORMajorType(of: initial)
    let additional = initial & 0x1f
    if additional < 24 { return (major, UInt64(additional)) }
    guard major != .simple, additional <= 27 else { throw .malformed }
    let width = 1 << Int(additional - 24)
    guard bytes.count - position >= width else { throw .malformed }
    let argument = position..<position + width
    var value: UInt64 = 0
    for index in argument { value = value << 8 | UInt64(bytes[index]) }
    position = argument.upperBound
    guard value <= maximumInteger, value >= CBORMajorType.leastValue(width: width) else { throw .malformed }
    return (major, value)
  }
}

/// The largest integer anywhere in Holdfast, 2^53 - 1. JSON carries integers exactly up to this one.
package var maximumInteger: UInt64 { (1 << 53) - 1 }

/// The order of a map's labels: each must come after the one before, in the order of their encoded bytes.
///
/// Source: RFC 8949 §4.2.1.
package struct CBORLabelOrder {
  private var previous: Int64?

  /// Creates the order of a map that has no labels yet.
  package init() {}

  /// Takes the next label. Throws `malformed` if it repeats or comes too late.
  package mutating func advance(to label: Int64) throws(EncodingFault) {
    if let previous, !Self.precedes(previous, label) { throw .malformed }
    previous = label
  }

  private static func precedes(_ left: Int64, _ right: Int64) -> Bool {
    switch (left < 0, right < 0) {
    case (false, true): true
    case (true, false): false
    case (false, false): left < right
    case (true, true): left > right
    }
  }
}

extension CBORReader {
  /// Reads the label of a map's next pair. Throws `malformed` if it is out of order or repeated.
  @inline(never)
  package mutating func label(_ order: inout CBORLabelOrder) throws(EncodingFault) -> Int64 {
    let label = try integer()
    try order.advance(to: label)
    return label
  }

  /// Reads the label of a map's next pair. Throws `unexpected` unless it is `expected`.
  package mutating func label(_ expected: Int64, _ order: inout CBORLabelOrder) throws(EncodingFault) {
    guard try label(&order) == expected else { throw .unexpected }
  }

  /// The deepest nesting of a value that is skipped.
  private static var depthLimit: Int { 8 }

  /// Skips the next value of any type, so that a later version of a message can have members that this version does not
  /// know.
  ///
  /// - Throws: `malformed` for a value that is not deterministic CBOR (RFC 8949 §4.2.1), has an integer beyond
  ///   2^53 - 1, a tag, a float or a simple value other than null and Booleans anywhere, has a map with keys other than
  ///   integers and strings, or is nested more than 8 deep.
  package mutating func skipValue() throws(EncodingFault) {
    try skipValue(depthLimit: Self.depthLimit)
  }

  private mutating func skipValue(depthLimit: Int) throws(EncodingFault) {
    guard depthLimit > 0 else { throw .malformed }
    switch try nextMajorType() {
    case .unsigned, .negative: _ = try integer()
    case .bytes: _ = try byteString()
    case .text: _ = try textString()
    case .array:
      for _ in 0..<(try arrayHead()) { try skipValue(depthLimit: depthLimit - 1) }
    case .map: try skipPairs(depthLimit: depthLimit - 1)
    case .tag: throw .malformed
    case .simple: try simpleValue()
    }
  }

  /// Skips a map, whose keys must rise in the order of their encoded bytes.
  private mutating func skipPairs(depthLimit: Int) throws(EncodingFault) {
    var previous: Range<Int>?
    for _ in 0..<(try mapHead()) {
      let start = position
      switch try nextMajorType() {
      case .unsigned, .negative, .bytes, .text: try skipValue(depthLimit: 1)
      case .array, .map, .tag, .simple: throw .malformed
      }
      let key = start..<position
      if let previous, !isEncoding(previous, before: key) { throw .malformed }
      previous = key
      try skipValue(depthLimit: depthLimit)
    }
  }

  private func isEncoding(_ left: Range<Int>, before right: Range<Int>) -> Bool {
    for offset in 0..<min(left.count, right.count) {
      let (leftByte, rightByte) = (byte(at: left.lowerBound + offset), byte(at: right.lowerBound + offset))
      if leftByte != rightByte { return leftByte < rightByte }
    }
    return left.count < right.count
  }
}

/// The major type of a CBOR item: the top three bits of its head.
///
/// Source: RFC 8949 §3.1.
package enum CBORMajorType: UInt8 {
  /// The major types 0 to 7, in this order.
  case unsigned, negative, bytes, text, array, map, tag, simple

  init(of initialByte: UInt8) {
    self = CBORMajorType(rawValue: initialByte >> 5) ?? .simple
  }

  /// Returns the least value that needs an argument of `width` bytes (1, 2, 4 or 8).
  static func leastValue(width: Int) -> UInt64 {
    switch width {
    case 1: 24
    case 2: 1 << 8
    case 4: 1 << 16
    default: 1 << 32
    }
  }
}
