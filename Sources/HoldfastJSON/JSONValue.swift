/// One JSON value; objects keep the order of their members, and numbers are integers from 0 to 2^53 - 1.
///
/// Source: RFC 8259, narrowed. Not for secrets that must be wiped: its strings are copies.
public enum JSONValue: Sendable {
  case object([(String, JSONValue)])
  case array([JSONValue])
  case string(String)
  case integer(UInt64)
  case bool(Bool)
  case null
}

extension JSONValue {
  /// The member of that name; nil when there is none, or when this is no object. Names are compared byte by byte.
  public subscript(name: String) -> JSONValue? {
    members?.first { haveSameBytes($0.0, name) }?.1
  }

  /// The members of an object, in their order.
  public var members: [(String, JSONValue)]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// The elements of an array.
  public var elements: [JSONValue]? {
    if case .array(let elements) = self { elements } else { nil }
  }

  /// The text of a string.
  public var text: String? {
    if case .string(let text) = self { text } else { nil }
  }

  /// The value of an integer.
  public var number: UInt64? {
    if case .integer(let number) = self { number } else { nil }
  }

  /// The value of true or false.
  public var flag: Bool? {
    if case .bool(let flag) = self { flag } else { nil }
  }

  /// Whether this is an object of these members and no others.
  public func hasOnly(_ names: [String]) -> Bool {
    guard let members else { return false }
    return members.allSatisfy { member in names.contains { haveSameBytes($0, member.0) } }
  }
}

extension JSONValue: Equatable {
  public static func == (left: JSONValue, right: JSONValue) -> Bool {
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

/// Whether two texts are the same UTF-8. `String`'s own `==` takes a Kelvin sign for a K.
public func haveSameBytes(_ left: String, _ right: String) -> Bool {
  left.utf8.elementsEqual(right.utf8)
}
