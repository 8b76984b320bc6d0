/// Reads deterministic CBOR, and nothing else, without copying.
///
/// Source: RFC 8949 §4.2.1, with integers and lengths of at most 2^53 - 1 and without floats. Spans that it gives point
/// into the bytes it was made with.
public struct CBORReader: ~Escapable {
  private let bytes: Span<UInt8>
  /// How many bytes were read.
  public private(set) var position = 0

  @_lifetime(copy bytes)
  public init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  /// Reads an unsigned integer (major type 0).
  public mutating func unsigned() throws(EncodingFault) -> UInt64 {
    try argument(of: .unsigned)
  }

  /// Reads an integer of either sign (major types 0 and 1).
  public mutating func integer() throws(EncodingFault) -> Int64 {
    let (major, value) = try head()
    switch major {
    case .unsigned: return Int64(value)
    case .negative: return -1 - Int64(value)
    default: throw .unexpected
    }
  }

  /// Reads a byte string (major type 2).
  @_lifetime(copy self)
  public mutating func byteString() throws(EncodingFault) -> Span<UInt8> {
    try take(argument(of: .bytes))
  }

  /// Reads a byte string of exactly `count` bytes.
  public mutating func fixedBytes<let count: Int>() throws(EncodingFault) -> FixedBytes<count> {
    guard let fixed = FixedBytes<count>(try byteString()) else { throw .unexpected }
    return fixed
  }

  /// Reads a text string (major type 3): its bytes, which are valid UTF-8.
  @_lifetime(copy self)
  public mutating func textString() throws(EncodingFault) -> Span<UInt8> {
    let text = try take(argument(of: .text))
    guard isValidUTF8(text) else { throw .malformed }
    return text
  }

  /// Reads the head of an array (major type 4): the number of elements that follow.
  public mutating func arrayHead() throws(EncodingFault) -> Int {
    Int(clamping: try argument(of: .array))
  }

  /// Reads the head of an array that must have exactly `count` elements.
  public mutating func array(of count: Int) throws(EncodingFault) {
    guard try arrayHead() == count else { throw .unexpected }
  }

  /// Reads the head of a map (major type 5): the number of pairs that follow.
  public mutating func mapHead() throws(EncodingFault) -> Int {
    Int(clamping: try argument(of: .map))
  }

  /// Reads a tag (major type 6).
  public mutating func tag() throws(EncodingFault) -> UInt64 {
    try argument(of: .tag)
  }

  /// Reads a tag, which must be `expected`.
  public mutating func tag(_ expected: UInt64) throws(EncodingFault) {
    guard try tag() == expected else { throw .unexpected }
  }

  /// Reads null if it is next; says whether it was.
  public mutating func null() -> Bool {
    guard position < bytes.count, bytes[position] == 0xf6 else { return false }
    position += 1
    return true
  }

  /// The major type of the next item, which is left unread.
  public func nextMajorType() throws(EncodingFault) -> CBORMajorType {
    guard position < bytes.count else { throw .malformed }
    return CBORMajorType(of: bytes[position])
  }

  /// Reads over false, true or null: no other simple value (major type 7) is used.
  mutating func simpleValue() throws(EncodingFault) {
    guard (20...22).contains(try argument(of: .simple)) else { throw .malformed }
  }

  /// A byte that was read already.
  func byte(at position: Int) -> UInt8 { bytes[position] }

  /// Ends the reading: no byte may be left.
  public func finish() throws(EncodingFault) {
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
    var value: UInt64 = 0
    for _ in 0..<width {
      value = value << 8 | UInt64(bytes[position])
      position += 1
    }
    guard value <= maximumInteger, value >= CBORMajorType.leastValue(width: width) else { throw .malformed }
    return (major, value)
  }
}

/// The largest integer anywhere in Holdfast, 2^53 - 1: what JSON carries exactly.
public var maximumInteger: UInt64 { (1 << 53) - 1 }
