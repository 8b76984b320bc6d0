extension JSONValue {
  /// Reads one JSON text; nothing may follow it but white space.
  ///
  /// Source: RFC 8259, narrowed: UTF-8, integers as digits alone, no member twice, at most 16 levels.
  /// Throws ``JSONFault/tooLong`` for more than `byteLimit` bytes.
  public init(parsing bytes: Span<UInt8>, byteLimit: Int) throws(JSONFault) {
    guard bytes.count <= byteLimit else { throw .tooLong }
    var parser = JSONParser(bytes)
    self = try parser.document()
  }

  /// Reads one JSON text.
  public init(parsing bytes: [UInt8], byteLimit: Int) throws(JSONFault) {
    self = try JSONValue(parsing: bytes.span, byteLimit: byteLimit)
  }
}

/// A recursive descent over bytes.
struct JSONParser: ~Escapable {
  let bytes: Span<UInt8>
  var position = 0

  private static let greatestDepth = 16
  private static let greatestInteger: UInt64 = (1 << 53) - 1

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  mutating func document() throws(JSONFault) -> JSONValue {
    let value = try value(depth: 0)
    skipWhiteSpace()
    guard position == bytes.count else { throw .malformed }
    return value
  }

  private mutating func value(depth: Int) throws(JSONFault) -> JSONValue {
    skipWhiteSpace()
    guard let first = peek else { throw .malformed }
    switch first {
    case UInt8(ascii: "{"): return try object(depth: depth + 1)
    case UInt8(ascii: "["): return try array(depth: depth + 1)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "0")...UInt8(ascii: "9"): return .integer(try integer())
    case UInt8(ascii: "t"):
      try literal("true")
      return .bool(true)
    case UInt8(ascii: "f"):
      try literal("false")
      return .bool(false)
    case UInt8(ascii: "n"):
      try literal("null")
      return .null
    default: throw .malformed
    }
  }

  private mutating func object(depth: Int) throws(JSONFault) -> JSONValue {
    guard depth <= Self.greatestDepth else { throw .tooDeep }
    position += 1
    var members: [(String, JSONValue)] = []
    var names: Set<[UInt8]> = []
    if take(UInt8(ascii: "}")) { return .object([]) }
    repeat {
      skipWhiteSpace()
      guard peek == UInt8(ascii: "\"") else { throw .malformed }
      let name = try string()
      guard names.insert(Array(name.utf8)).inserted else { throw .duplicateMember }
      guard take(UInt8(ascii: ":")) else { throw .malformed }
      members.append((name, try value(depth: depth)))
    } while take(UInt8(ascii: ","))
    guard take(UInt8(ascii: "}")) else { throw .malformed }
    return .object(members)
  }

  private mutating func array(depth: Int) throws(JSONFault) -> JSONValue {
    guard depth <= Self.greatestDepth else { throw .tooDeep }
    position += 1
    var elements: [JSONValue] = []
    if take(UInt8(ascii: "]")) { return .array([]) }
    repeat {
      elements.append(try value(depth: depth))
    } while take(UInt8(ascii: ","))
    guard take(UInt8(ascii: "]")) else { throw .malformed }
    return .array(elements)
  }

  private mutating func integer() throws(JSONFault) -> UInt64 {
    let start = position
    var number: UInt64 = 0
    while let digit = peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) {
      number = number * 10 + UInt64(digit - UInt8(ascii: "0"))
      guard number <= Self.greatestInteger else { throw .malformed }
      position += 1
    }
    let hasLeadingZero = bytes[start] == UInt8(ascii: "0") && position - start > 1
    guard !hasLeadingZero else { throw .malformed }
    return number
  }

  private mutating func literal(_ text: StaticString) throws(JSONFault) {
    for index in 0..<text.utf8CodeUnitCount {
      guard peek == (unsafe text.utf8Start[index]) else { throw .malformed }
      position += 1
    }
  }

  /// The next byte, left unread.
  var peek: UInt8? {
    position < bytes.count ? bytes[position] : nil
  }

  /// Skips white space, and `expected` if it is next; says whether it was.
  private mutating func take(_ expected: UInt8) -> Bool {
    skipWhiteSpace()
    guard peek == expected else { return false }
    position += 1
    return true
  }

  private mutating func skipWhiteSpace() {
    while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d { position += 1 }
  }
}
