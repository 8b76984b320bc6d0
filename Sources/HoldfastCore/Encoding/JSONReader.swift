/// A reader of strict JSON that copies nothing: UTF-8, integers as digits only, no duplicate members, no trailing
/// bytes.
///
/// Source: RFC 8259. It refuses duplicates as RFC 7515 §4 demands, and compares names after it resolves their escapes.
///
/// Timing: strings may be secret if they are ASCII. Reading them reveals their lengths and where they have escapes. Names, numbers
/// and everything between strings are public.
package struct JSONReader: ~Escapable {
  private let text: Span<UInt8>
  private var position = 0

  /// The deepest nesting of arrays and objects in a value that is skipped.
  private static let maximumDepth = 8

  /// Creates a reader at the start of `text`. Throws `malformed` if it is not UTF-8.
  @_lifetime(copy text)
  package init(_ text: Span<UInt8>) throws(EncodingFault) {
    guard isValidUTF8(text) else { throw .malformed }
    self.text = text
  }

  /// Begins an object, and returns its position for ``nextMember(_:)``.
  package mutating func beginObject() throws(EncodingFault) -> JSONObjectPosition {
    try expect(0x7b)
    return JSONObjectPosition(start: position)
  }

  /// Reads the next member's name; nil, and the object is read, if there is none. The caller then reads or skips the
  /// value.
  @_lifetime(copy self)
  package mutating func nextMember(_ object: inout JSONObjectPosition) throws(EncodingFault) -> JSONString? {
    skipWhitespace()
    if take(0x7d) { return nil }
    if object.memberCount > 0 { try expect(0x2c) }
    let nameStart = position
    let name = try string()
    try refuseDuplicate(of: name, startingAt: nameStart, in: object)
    try expect(0x3a)
    object.memberCount += 1
    return name
  }

  /// Begins an array, and returns the index that ``nextElement(_:)`` takes.
  package mutating func beginArray() throws(EncodingFault) -> Int {
    try expect(0x5b)
    return 0
  }

  /// Returns whether the array has another element, which the caller then reads; if not, the array is read. `index`
  /// counts the elements.
  package mutating func nextElement(_ index: inout Int) throws(EncodingFault) -> Bool {
    skipWhitespace()
    if take(0x5d) { return false }
    if index > 0 { try expect(0x2c) }
    index += 1
    return true
  }

  /// Reads a string.
  @_lifetime(copy self)
  package mutating func string() throws(EncodingFault) -> JSONString {
    skipWhitespace()
    guard position < text.count else { throw .malformed }
    guard take(0x22) else { throw .unexpected }
    let start = position
    while position < text.count {
      let byte = text[position]
      if isCharacter(byte, 0x22) {
        position += 1
        return JSONString(checked: text.extracting(start..<position - 1))
      }
      if isCharacter(byte, 0x5c) {
        guard let escape = JSONEscape(text, at: position) else { throw .malformed }
        position += escape.length
      } else {
        guard hasBits(byte, 0xe0) else { throw .malformed }
        position += 1
      }
    }
    throw .malformed
  }

  /// Reads an integer from 0 to 2^53 - 1 that is written as digits only.
  package mutating func unsigned() throws(EncodingFault) -> UInt64 {
    skipWhitespace()
    let start = position
    var value: UInt64 = 0
    while position < text.count, 0x30...0x39 ~= text[position] {
      value = value * 10 + UInt64(text[position] - 0x30)
      guard value <= maximumInteger else { throw .malformed }
      position += 1
    }
    let digitCount = position - start
    guard digitCount > 0 else { throw .unexpected }
    guard digitCount == 1 || text[start] != 0x30 else { throw .malformed }
    if position < text.count, isNumberCharacter(text[position]) { throw .malformed }
    return value
  }

  /// Skips a value of any type, and checks it as strictly as the rest.
  package mutating func skipValue() throws(EncodingFault) {
    try skipValue(depth: 0)
  }

  /// Ends the reading. Throws `malformed` if anything but white space is left.
  package mutating func finish() throws(EncodingFault) {
    skipWhitespace()
    guard position == text.count else { throw .malformed }
  }

  private mutating func skipValue(depth: Int) throws(EncodingFault) {
    guard depth < Self.maximumDepth else { throw .malformed }
    skipWhitespace()
    guard position < text.count else { throw .malformed }
    switch text[position] {
    case 0x7b:
      var object = try beginObject()
      while try nextMember(&object) != nil { try skipValue(depth: depth + 1) }
    case 0x5b:
      var index = try beginArray()
      while try nextElement(&index) { try skipValue(depth: depth + 1) }
    case 0x22: _ = try string()
    case 0x74: try expect("true")
    case 0x66: try expect("false")
    case 0x6e: try expect("null")
    default: _ = try unsigned()
    }
  }

  /// Throws `malformed` if an earlier member of the object has this name. It reads the object again from its start:
  /// objects are small, and there is no memory for a set of names.
  private func refuseDuplicate(
    of name: borrowing JSONString, startingAt nameStart: Int, in object: JSONObjectPosition
  ) throws(EncodingFault) {
    var earlier = JSONReader(resuming: text, at: object.start)
    for _ in 0..<object.memberCount {
      _ = earlier.take(0x2c)
      guard try !earlier.string().equals(name) else { throw .malformed }
      try earlier.passValue()
    }
  }

  /// Skips the colon and the value of a member that was read before, up to the comma. It does not compare the names in that value again,
  /// since each level of nesting would multiply the work of the level around it.
  private mutating func passValue() throws(EncodingFault) {
    var depth = 0
    while text.count > position {
      switch text[position] {
      case 0x22:
        _ = try string()
        continue
      case 0x7b, 0x5b: depth += 1
      case 0x2c where depth == 0: return
      case 0x7d, 0x5d: depth -= 1
      default: break
      }
      position += 1
    }
  }

  @_lifetime(copy text)
  private init(resuming text: Span<UInt8>, at position: Int) {
    self.text = text
    self.position = position
  }

  private func isNumberCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x2b, 0x2d, 0x2e, 0x30...0x39, 0x45, 0x65: true
    default: false
    }
  }

  private mutating func skipWhitespace() {
    while position < text.count {
      switch text[position] {
      case 0x20, 0x09, 0x0a, 0x0d: position += 1
      default: return
      }
    }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard position < text.count, text[position] == byte else { return false }
    position += 1
    return true
  }

  private mutating func expect(_ byte: UInt8) throws(EncodingFault) {
    skipWhitespace()
    guard take(byte) else { throw .malformed }
  }

  private mutating func expect(_ word: StaticString) throws(EncodingFault) {
    for index in 0..<word.utf8CodeUnitCount {
      guard unsafe take(word.utf8Start[index]) else { throw .malformed }
    }
  }
}

/// The start of an object, and the number of its members that were read.
package struct JSONObjectPosition {
  fileprivate let start: Int
  fileprivate var memberCount = 0
}
