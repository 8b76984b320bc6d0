/// A value of a JSON text together with the way to it, so that a mistake in it can be named.
///
/// Readers of files that people write go through it instead of ``JSONValue``.
public struct JSONMember: Sendable {
  public let value: JSONValue
  /// The way to the value from the outermost one.
  public let path: [JSONMistake.Step]

  public init(_ value: JSONValue, at path: [JSONMistake.Step] = []) {
    (self.value, self.path) = (value, path)
  }

  /// A mistake in this value.
  public func mistake(_ expectation: JSONMistake.Expectation) -> JSONMistake {
    JSONMistake(at: path, expected: expectation)
  }
}

extension JSONMember {
  /// The member of that name; nil where there is none.
  public func member(_ name: String) -> JSONMember? {
    value[name].map { JSONMember($0, at: path + [.member(name)]) }
  }

  /// The member of that name. Throws where there is none.
  public func required(_ name: String) throws(JSONMistake) -> JSONMember {
    guard let member = member(name) else { throw JSONMistake(at: path + [.member(name)], expected: .presence) }
    return member
  }

  /// The members, at most `limit`. Throws where this is no object, or has more.
  public func members(atMost limit: Int = .max) throws(JSONMistake) -> [(name: String, member: JSONMember)] {
    guard let members = value.members else { throw mistake(.object) }
    guard members.count <= limit else { throw mistake(.atMost(limit)) }
    return members.map { ($0.0, JSONMember($0.1, at: path + [.member($0.0)])) }
  }

  /// Throws where this is no object, or has a member of another name.
  public func checkMembers(_ names: [String]) throws(JSONMistake) {
    for (name, member) in try members() where !names.contains(where: { haveSameBytes($0, name) }) {
      throw member.mistake(.knownMember(names))
    }
  }

  /// The elements. Throws where this is no array, or does not have `count` elements.
  public func elements(count: Int? = nil) throws(JSONMistake) -> [JSONMember] {
    guard let elements = value.elements, count == nil || elements.count == count else {
      throw mistake(.array(elementCount: count))
    }
    return elements.enumerated().map { JSONMember($0.element, at: path + [.element($0.offset)]) }
  }

  /// True or false. Throws where this is neither.
  public func flag() throws(JSONMistake) -> Bool {
    guard let flag = value.flag else { throw mistake(.flag) }
    return flag
  }

  /// An integer. Throws where this is none, or not in `range`.
  public func integer(_ range: ClosedRange<UInt64> = 0...((1 << 53) - 1)) throws(JSONMistake) -> UInt64 {
    guard let number = value.number, range.contains(number) else { throw mistake(.integer(range)) }
    return number
  }

  /// A text of `byteCounts` bytes of UTF-8. Throws where this is none.
  public func text(byteCounts: ClosedRange<Int>) throws(JSONMistake) -> String {
    guard let text = value.text, byteCounts.contains(text.utf8.count) else { throw mistake(.byteCount(byteCounts)) }
    return text
  }
}
