extension JSONValue {
  /// Parses one JSON text, which only white space may follow.
  ///
  /// Source: RFC 8259, restricted: UTF-8, only integers written as digits unless `otherNumbers` allows more, no repeated member,
  /// at most 16 levels.
  /// - Throws: ``JSONFault``, of which ``JSONFault/tooLong`` for more than `byteLimit` bytes.
  package init(
    parsing bytes: Span<UInt8>, byteLimit: Int, otherNumbers: OtherNumbers = .refused
  ) throws(JSONFault) {
    guard bytes.count <= byteLimit else { throw .tooLong }
    var parser = JSONParser(bytes, otherNumbers: otherNumbers)
    self = try parser.document()
  }

  /// Parses one JSON text; see the variant for a span.
  package init(
    parsing bytes: [UInt8], byteLimit: Int, otherNumbers: OtherNumbers = .refused
  ) throws(JSONFault) {
    self = try JSONValue(parsing: bytes.span, byteLimit: byteLimit, otherNumbers: otherNumbers)
  }

  /// The handling of numbers that are not integers from 0 to 2^53 - 1.
  package enum OtherNumbers: Sendable {
    /// The text is malformed.
    case refused
    /// A number whose fraction is zero, such as 60.0, is an integer, as in JSON Schema (2020-12 §4.2.3). Others are refused.
    case withoutFraction
    /// The number becomes a string of its characters. This is for files from others, in parts that no reader uses.
    case asText
  }
}

/// A recursive descent parser.
struct JSONParser: ~Escapable {
  let bytes: Span<UInt8>
  var position = 0
  /// The path from the outermost value to the present one. After an error, it is the path to the error.
  private(set) var trail: [JSONMistake.Step] = []
  /// The path to search for, and the position at which its target begins.
  private var wanted: [JSONMistake.Step]?
  private var found: Int?
  private let otherNumbers: JSONValue.OtherNumbers

  private static let greatestInteger: UInt64 = (1 << 53) - 1

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, otherNumbers: JSONValue.OtherNumbers) {
    self.bytes = bytes
    self.otherNumbers = otherNumbers
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
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): return try number()
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
    guard depth <= JSONValue.levelLimit else { throw .tooDeep }
    position += 1
    var members: [(String, JSONValue)] = []
    var names: Set<[UInt8]> = []
    if take(UInt8(ascii: "}")) { return .object([]) }
    repeat {
      skipWhiteSpace()
      guard peek == UInt8(ascii: "\"") else { throw .malformed }
      let start = position
      let name = try string()
      step(to: .member(name), at: start)
      guard names.insert(Array(name.utf8)).inserted else { throw .duplicateMember }
      guard take(UInt8(ascii: ":")) else { throw .malformed }
      members.append((name, try value(depth: depth)))
      trail.removeLast()
    } while take(UInt8(ascii: ","))
    guard take(UInt8(ascii: "}")) else { throw .malformed }
    return .object(members)
  }

  private mutating func array(depth: Int) throws(JSONFault) -> JSONValue {
    guard depth <= JSONValue.levelLimit else { throw .tooDeep }
    position += 1
    var elements: [JSONValue] = []
    if take(UInt8(ascii: "]")) { return .array([]) }
    repeat {
      skipWhiteSpace()
      step(to: .element(elements.count), at: position)
      elements.append(try value(depth: depth))
      trail.removeLast()
    } while take(UInt8(ascii: ","))
    guard take(UInt8(ascii: "]")) else { throw .malformed }
    return .array(elements)
  }

  private mutating func step(to next: JSONMistake.Step, at start: Int) {
    trail.append(next)
    if let wanted, found == nil, trail == wanted { found = start }
  }

  /// Returns the position at which the member or element at the end of a path begins; nil if there is none.
  static func position(of path: [JSONMistake.Step], in bytes: [UInt8]) -> Int? {
    var parser = JSONParser(bytes.span, otherNumbers: .refused)
    parser.wanted = path
    _ = try? parser.document()
    return parser.found
  }

  /// Reads a number. Source: RFC 8259 §6.
  private mutating func number() throws(JSONFault) -> JSONValue {
    let start = position
    let isNegative = take(byte: UInt8(ascii: "-"))
    let digits = try digits()
    guard digits.count == 1 || bytes[digits.lowerBound] != UInt8(ascii: "0") else { throw .malformed }
    var integerEnd = position
    if take(byte: UInt8(ascii: ".")) {
      let fraction = try self.digits()
      if case .withoutFraction = otherNumbers, isZero(fraction) { integerEnd = position }
    }
    if take(byte: UInt8(ascii: "e")) || take(byte: UInt8(ascii: "E")) {
      if !take(byte: UInt8(ascii: "+")) { _ = take(byte: UInt8(ascii: "-")) }
      _ = try self.digits()
    }
    if !isNegative, position == integerEnd, let integer = integer(digits) { return .integer(integer) }
    guard case .asText = otherNumbers else { throw .malformed }
    var text = ""
    for index in start..<position { text.unicodeScalars.append(Unicode.Scalar(bytes[index])) }
    return .string(text)
  }

  private mutating func digits() throws(JSONFault) -> Range<Int> {
    let start = position
    while let digit = peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) { position += 1 }
    guard position > start else { throw .malformed }
    return start..<position
  }

  private func isZero(_ digits: Range<Int>) -> Bool {
    for index in digits where bytes[index] != UInt8(ascii: "0") { return false }
    return true
  }

  private func integer(_ digits: Range<Int>) -> UInt64? {
    guard digits.count <= 16 else { return nil }
    var number: UInt64 = 0
    for index in digits { number = number * 10 + UInt64(bytes[index] - UInt8(ascii: "0")) }
    return number <= Self.greatestInteger ? number : nil
  }

  private mutating func literal(_ text: StaticString) throws(JSONFault) {
    for index in 0..<text.utf8CodeUnitCount {
      guard peek == (unsafe text.utf8Start[index]) else { throw .malformed }
      position += 1
    }
  }

  /// The next byte, which stays unread.
  var peek: UInt8? {
    position < bytes.count ? bytes[position] : nil
  }

  /// Skips the next byte if it is `expected`, and returns whether it was.
  private mutating func take(byte expected: UInt8) -> Bool {
    guard peek == expected else { return false }
    position += 1
    return true
  }

  /// Skips white space, and then the next byte if it is `expected`; returns whether it was.
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

extension JSONParser {
  /// Reads a string, from one quotation mark to the next. Source: RFC 8259 §7.
  mutating func string() throws(JSONFault) -> String {
    position += 1
    var utf8: [UInt8] = []
    while true {
      let byte = try next()
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(validating: utf8, as: UTF8.self) else { throw .malformed }
        return text
      case UInt8(ascii: "\\"):
        utf8.append(contentsOf: try escape().utf8)
      case 0..<0x20:
        throw .malformed
      default:
        utf8.append(byte)
      }
    }
  }

  private mutating func escape() throws(JSONFault) -> String {
    switch try next() {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return try String(Character(escapedScalar()))
    default: throw .malformed
    }
  }

  /// Reads one scalar from four digits or a surrogate pair; throws `malformed` for half a pair.
  private mutating func escapedScalar() throws(JSONFault) -> Unicode.Scalar {
    let first = try fourDigits()
    guard (0xd800...0xdbff).contains(first) else {
      guard let scalar = Unicode.Scalar(first) else { throw .malformed }
      return scalar
    }
    guard try next() == UInt8(ascii: "\\"), try next() == UInt8(ascii: "u") else { throw .malformed }
    let second = try fourDigits()
    guard (0xdc00...0xdfff).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw .malformed }
    return scalar
  }

  private mutating func fourDigits() throws(JSONFault) -> UInt32 {
    var number: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = Character(Unicode.Scalar(try next())).hexDigitValue else { throw .malformed }
      number = number << 4 | UInt32(digit)
    }
    return number
  }

  private mutating func next() throws(JSONFault) -> UInt8 {
    guard let byte = peek else { throw .malformed }
    position += 1
    return byte
  }
}

/// A reason why Holdfast rejects a JSON text.
package enum JSONFault: Error {
  /// The text is not JSON, is not UTF-8, or has a number that is not a plain integer of at most 2^53 - 1.
  case malformed
  /// An object has two members with the same name, after unescaping.
  case duplicateMember
  /// Arrays and objects are nested more than 16 levels deep.
  case tooDeep
  /// The text has more bytes than the caller allows.
  case tooLong
}
