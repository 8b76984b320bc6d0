extension JSONParser {
  /// Reads a string, from quotation mark to quotation mark. Source: RFC 8259 §7.
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

  /// One scalar from four digits, or from a surrogate pair; half a pair is malformed.
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
