import HoldfastCore
import HoldfastFormats

/// The form of a JSON value, which the service checks in requests, and which `openapi.yaml` describes.
///
/// A value that has the right form but cannot count is refused with reasons, not as malformed.
///
/// Source: OpenAPI 3.1 §4.8.24, JSON Schema 2020-12.
package indirect enum Schema: Sendable {
  /// A text of this many characters (Unicode scalars), without control characters.
  case text(ClosedRange<Int>)
  /// A text of this many lower-case hexadecimal digits.
  case hexadecimal(digitCount: Int)
  /// This many bytes, each as two lower-case hexadecimal digits.
  case bytes(ClosedRange<Int>)
  /// Base64 with padding (RFC 4648 §4) of this many bytes.
  case base64(byteCounts: ClosedRange<Int>)
  /// A text of this many characters (Unicode scalars) of any kind.
  case anyText(ClosedRange<Int>)
  /// An object with any values, and none of these names.
  case openObject(without: [String])
  /// Any value, whose numbers are integers.
  case anyValue
  /// A coordinate of P-256: 32 bytes as base64url without padding (RFC 7518 §6.2.1.2).
  case coordinate
  /// The code of an invitation, as a person types it.
  case invitationCode
  /// One of these texts.
  case choice([String])
  /// An integer.
  case integer(ClosedRange<UInt64>)
  /// A time in Unix seconds.
  case time
  /// True or false.
  case flag
  /// An array whose elements have one form.
  case array(Schema, count: ClosedRange<Int>)
  /// An object with these members and no others.
  case object([Property])
  /// An object with any names.
  case map(Schema)
  /// A value or null.
  case nullable(Schema)
  /// A form with a name of its own in `openapi.yaml`.
  case named(String, Schema)

  /// Base64 with padding of at most this many bytes.
  static func base64(byteLimit: Int) -> Schema { .base64(byteCounts: 0...byteLimit) }

  /// Any integer that JSON carries without loss (RFC 8259 §6).
  package static let anyInteger = Schema.integer(0...maximumInteger)
}

extension Schema {
  /// A member of an object, or a parameter of a query.
  package struct Property: Sendable {
    package let name: String
    package let schema: Schema
    package let isRequired: Bool
    /// A sentence for people.
    package let summary: String

    package init(_ name: String, _ schema: Schema, required: Bool = false, _ summary: String) {
      (self.name, self.schema, isRequired, self.summary) = (name, schema, required, summary)
    }
  }

  /// Checks the form of a value.
  package func check(_ member: JSONMember) throws(JSONMistake) {
    switch self {
    case .text(let counts): try Self.check(text: member, counts)
    case .hexadecimal(let count):
      guard let digits = member.value.text?.utf8, digits.count == count, digits.allSatisfy(Self.isDigit) else {
        throw member.mistake(.hexadecimal(digitCount: count))
      }
    case .bytes(let counts):
      guard let digits = member.value.text?.utf8, digits.count % 2 == 0, counts.contains(digits.count / 2),
        digits.allSatisfy(Self.isDigit)
      else { throw member.mistake(.form("\(counts.lowerBound) to \(counts.upperBound) bytes in hexadecimal digits")) }
    case .base64(let counts):
      guard let text = member.value.text, Self.base64Bytes(text).map({ counts.contains($0.count) }) ?? false else {
        let count = counts.count == 1 ? "\(counts.upperBound)" : "at most \(counts.upperBound)"
        throw member.mistake(.form("base64 with padding, of \(count) bytes"))
      }
    case .anyText(let counts):
      guard let text = member.value.text?.unicodeScalars, counts.contains(text.count) else {
        throw member.mistake(.form("a text of \(counts.lowerBound) to \(counts.upperBound) characters"))
      }
    case .openObject(let names):
      guard !(try member.members()).contains(where: { name, _ in names.contains { Self.areSame($0, name) } }) else {
        throw member.mistake(.form("an object without the names \(names.joined(separator: ", "))"))
      }
    case .anyValue: break
    case .coordinate:
      guard let text = member.value.text, Self.isCoordinate(Array(text.utf8)) else {
        throw member.mistake(.form("32 bytes as base64url"))
      }
    case .invitationCode:
      guard let text = member.value.text, InvitationCode(text) != nil else {
        throw member.mistake(.form("20 letters and digits of base32"))
      }
    case .choice(let texts):
      guard let text = member.value.text, texts.contains(where: { Self.areSame($0, text) }) else {
        throw member.mistake(.text(of: texts))
      }
    case .integer(let range): _ = try member.integer(range)
    case .time: _ = try member.integer()
    case .flag: _ = try member.flag()
    case .array(let schema, let counts):
      let elements = try member.elements()
      guard elements.count <= counts.upperBound else { throw member.mistake(.atMost(counts.upperBound)) }
      guard elements.count >= counts.lowerBound else { throw member.mistake(.array(elementCount: counts.lowerBound)) }
      for element in elements { try schema.check(element) }
    case .object(let properties): try Self.check(member, properties)
    case .map(let schema): for (_, value) in try member.members() { try schema.check(value) }
    case .nullable(let schema): if member.value != .null { try schema.check(member) }
    case .named(_, let schema): try schema.check(member)
    }
  }

  /// Checks the members of an object.
  package static func check(_ object: JSONMember, _ properties: [Property]) throws(JSONMistake) {
    try object.checkMembers(properties.map(\.name))
    for property in properties {
      guard let member = property.isRequired ? try object.required(property.name) : object.member(property.name) else {
        continue
      }
      try property.schema.check(member)
    }
  }

  private static func check(text member: JSONMember, _ counts: ClosedRange<Int>) throws(JSONMistake) {
    guard let text = member.value.text?.unicodeScalars, counts.contains(text.count) else {
      throw member.mistake(.form("a text of \(counts.lowerBound) to \(counts.upperBound) characters"))
    }
    guard !hasControlCharacters(member.value.text ?? "") else {
      throw member.mistake(.form("a text without control characters"))
    }
  }

  /// Returns whether a text has characters of the general category Cc.
  static func hasControlCharacters(_ text: String) -> Bool {
    text.unicodeScalars.contains { $0.value < 0x20 || (0x7F..<0xA0).contains($0.value) }
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  private static func areSame(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }

  /// Returns the bytes of a text in base64 with padding; nil for another text, and beyond 65,536 bytes.
  package static func base64Bytes(_ text: String) -> [UInt8]? {
    var buffer = ByteBuffer<65_536>()
    let characters = Array(text.utf8)
    do throws(EncodingFault) { try buffer.append(paddedBase64: characters.span) } catch { return nil }
    var bytes: [UInt8] = []
    bytes.append(buffer.bytes)
    return bytes
  }

  private static func isCoordinate(_ text: [UInt8]) -> Bool {
    var buffer = ByteBuffer<32>()
    do throws(EncodingFault) { try buffer.append(base64URL: text.span) } catch { return false }
    return buffer.bytes.count == 32
  }
}
