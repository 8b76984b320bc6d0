/// A JSON value. Objects keep the order of their members, and numbers are integers from 0 to 2^53 - 1.
///
/// Source: RFC 8259, restricted. It is not for secrets that must be wiped, because its strings are copies.
package enum JSONValue: Sendable {
  /// An object: its members, names and values, in their order.
  case object([(String, JSONValue)])
  /// An array: its elements in their order.
  case array([JSONValue])
  /// A string, without its escapes.
  case string(String)
  /// An integer from 0 to 2^53 - 1.
  case integer(UInt64)
  /// True or false.
  case bool(Bool)
  /// Null.
  case null
}

extension JSONValue {
  /// Returns the member with that name; nil if there is none, or this is not an object. Names are compared byte by byte.
  package subscript(name: String) -> JSONValue? {
    members?.first { haveSameBytes($0.0, name) }?.1
  }

  /// The members of an object, in their order; nil for any other value.
  package var members: [(String, JSONValue)]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// The elements of an array; nil for any other value.
  package var elements: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }

  /// The text of a string; nil for any other value.
  package var text: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The value of an integer; nil for any other value.
  package var number: UInt64? {
    if case .integer(let number) = self { number } else { nil }
  }

  /// The value of true or false; nil for any other value.
  package var flag: Bool? {
    if case .bool(let flag) = self { flag } else { nil }
  }

  /// Returns whether this is an object that has no members other than these.
  package func hasOnly(_ names: [String]) -> Bool {
    guard let members else { return false }
    return members.allSatisfy { member in names.contains { haveSameBytes($0, member.0) } }
  }
}

extension JSONValue: Equatable {
  /// Returns whether the values are equal: members in the same order, texts and names byte by byte.
  package static func == (left: JSONValue, right: JSONValue) -> Bool {
    switch (left, right) {
    case (.object(let left), .object(let right)):
      left.elementsEqual(right) { haveSameBytes($0.0, $1.0) && $0.1 == $1.1 }
    case (.array(let left), .array(let right)): left == right
    case (.string(let left), .string(let right)): haveSameBytes(left, right)
    case (.integer(let left), .integer(let right)): left == right
    case (.bool(let left), .bool(let right)): left == right
    case (.null, .null): true
    default: false
    }
  }
}

/// Returns whether two texts are the same UTF-8. In contrast, `==` of `String` treats a Kelvin sign and a K as equal.
package func haveSameBytes(_ left: String, _ right: String) -> Bool {
  left.utf8.elementsEqual(right.utf8)
}

extension JSONValue {
  /// Returns the JSON text without white space, with members in their order.
  package func compact() -> [UInt8] {
    var text: [UInt8] = []
    write(into: &text, indentation: nil)
    return text
  }

  /// Returns the JSON text with an indentation of two spaces for each level, and a newline at the end.
  package func pretty() -> [UInt8] {
    var text: [UInt8] = []
    write(into: &text, indentation: 0)
    text.append(UInt8(ascii: "\n"))
    return text
  }

  private func write(into text: inout [UInt8], indentation: Int?) {
    switch self {
    case .object(let members):
      writeItems(members, "{", "}", into: &text, indentation: indentation) { member, text, inner in
        writeString(member.0, into: &text)
        text.append(contentsOf: (indentation == nil ? ":" : ": ").utf8)
        member.1.write(into: &text, indentation: inner)
      }
    case .array(let elements):
      writeItems(elements, "[", "]", into: &text, indentation: indentation) { element, text, inner in
        element.write(into: &text, indentation: inner)
      }
    case .string(let string): writeString(string, into: &text)
    case .integer(let number): text.append(contentsOf: String(number).utf8)
    case .bool(let flag): text.append(contentsOf: (flag ? "true" : "false").utf8)
    case .null: text.append(contentsOf: "null".utf8)
    }
  }
}

private func writeItems<Item>(
  _ items: [Item], _ opening: String, _ closing: String, into text: inout [UInt8], indentation: Int?,
  _ write: (Item, inout [UInt8], Int?) -> Void
) {
  text.append(contentsOf: opening.utf8)
  let inner = indentation.map { $0 + 2 }
  for (index, item) in items.enumerated() {
    if index > 0 { text.append(UInt8(ascii: ",")) }
    if let inner { startLine(inner, in: &text) }
    write(item, &text, inner)
  }
  if let indentation, !items.isEmpty { startLine(indentation, in: &text) }
  text.append(contentsOf: closing.utf8)
}

private func startLine(_ indentation: Int, in text: inout [UInt8]) {
  text.append(UInt8(ascii: "\n"))
  text.append(contentsOf: repeatElement(UInt8(ascii: " "), count: indentation))
}

/// Writes a string. It escapes the characters that RFC 8259 §7 requires, and others that control a terminal: DEL, the C1 control
/// characters, and changes of direction.
private func writeString(_ string: String, into text: inout [UInt8]) {
  text.append(UInt8(ascii: "\""))
  for scalar in string.unicodeScalars {
    switch scalar.value {
    case 0x22: text.append(contentsOf: "\\\"".utf8)
    case 0x5c: text.append(contentsOf: "\\\\".utf8)
    case 0x0a: text.append(contentsOf: "\\n".utf8)
    case 0x0d: text.append(contentsOf: "\\r".utf8)
    case 0x09: text.append(contentsOf: "\\t".utf8)
    case 0..<0x20, 0x7f..<0xa0, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069:
      let digits = String(scalar.value, radix: 16)
      text.append(contentsOf: ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
    default: text.append(contentsOf: UTF8.encode(scalar)!)
    }
  }
  text.append(UInt8(ascii: "\""))
}
