/// A value of a JSON text together with its path, so that an error message can locate it.
///
/// Readers of files that people write use it instead of ``JSONValue``.
package struct JSONMember: Sendable {
  /// The value.
  package let value: JSONValue
  /// The path to the value from the outermost one.
  package let path: [JSONMistake.Step]

  /// Creates a member from a value and its path; an empty path stands for the outermost value.
  package init(_ value: JSONValue, at path: [JSONMistake.Step] = []) {
    (self.value, self.path) = (value, path)
  }

  /// Returns a mistake at this value.
  package func mistake(_ expectation: JSONMistake.Expectation) -> JSONMistake {
    JSONMistake(at: path, expected: expectation)
  }
}

extension JSONMember {
  /// Returns the member with that name; nil if there is none.
  package func member(_ name: String) -> JSONMember? {
    value[name].map { JSONMember($0, at: path + [.member(name)]) }
  }

  /// Returns the member with that name; throws if there is none.
  package func required(_ name: String) throws(JSONMistake) -> JSONMember {
    guard let member = member(name) else { throw JSONMistake(at: path + [.member(name)], expected: .presence) }
    return member
  }

  /// Returns the members, at most `limit`; throws if this is not an object, or has more.
  package func members(atMost limit: Int = .max) throws(JSONMistake) -> [(name: String, member: JSONMember)] {
    guard let members = value.members else { throw mistake(.object) }
    guard members.count <= limit else { throw mistake(.atMost(limit)) }
    return members.map { ($0.0, JSONMember($0.1, at: path + [.member($0.0)])) }
  }

  /// Throws if this is not an object, or has a member with another name.
  package func checkMembers(_ names: [String]) throws(JSONMistake) {
    for (name, member) in try members() where !names.contains(where: { haveSameBytes($0, name) }) {
      throw member.mistake(.knownMember(names))
    }
  }

  /// Returns the elements; throws if this is not an array, or does not have `count` elements.
  package func elements(count: Int? = nil) throws(JSONMistake) -> [JSONMember] {
    guard let elements = value.elements, count == nil || elements.count == count else {
      throw mistake(.array(elementCount: count))
    }
    return elements.enumerated().map { JSONMember($0.element, at: path + [.element($0.offset)]) }
  }

  /// Returns the value of true or false; throws for any other value.
  package func flag() throws(JSONMistake) -> Bool {
    guard let flag = value.flag else { throw mistake(.flag) }
    return flag
  }

  /// Returns an integer; throws if this is not one, or not in `range`.
  package func integer(_ range: ClosedRange<UInt64> = 0...((1 << 53) - 1)) throws(JSONMistake) -> UInt64 {
    guard let number = value.number, range.contains(number) else { throw mistake(.integer(range)) }
    return number
  }

  /// Returns a text of `byteCounts` bytes of UTF-8; throws for any other value.
  package func text(byteCounts: ClosedRange<Int>) throws(JSONMistake) -> String {
    guard let text = value.text, byteCounts.contains(text.utf8.count) else { throw mistake(.byteCount(byteCounts)) }
    return text
  }
}

/// A part of a JSON text that differs from the reader's expectation. It names members and lines, never values.
public struct JSONMistake: Error, Equatable, Sendable {
  /// A step from a value to one inside it.
  package enum Step: Equatable, Sendable {
    /// The step to the member with that name.
    case member(String)
    /// The step to the element at that index, counted from 0.
    case element(Int)
  }

  /// The expectation of the reader.
  package enum Expectation: Equatable, Sendable {
    /// The member is present.
    case presence
    /// The member's name is one of these.
    case knownMember([String])
    /// The member occurs only once.
    case uniqueMember
    /// The value is true or false.
    case flag
    /// The value is an integer in this range.
    case integer(ClosedRange<UInt64>)
    /// The value is one of these texts. As elements of an array, each occurs at most once.
    case text(of: [String])
    /// The text or member name has this many bytes of UTF-8.
    case byteCount(ClosedRange<Int>)
    /// The text or member name has this many hexadecimal digits, in lower case.
    case hexadecimal(digitCount: Int)
    /// The value has a form that these words describe.
    case form(String)
    /// The value is an object.
    case object
    /// The value is an array, with exactly this many elements unless the count is nil.
    case array(elementCount: Int?)
    /// There are at most this many members or elements.
    case atMost(Int)
    /// The text is JSON (RFC 8259), with integers as the only numbers.
    case syntax
    /// The text has at most 16 levels.
    case fewerLevels
    /// The text has at most this many bytes.
    case shorterText(Int)
  }

  /// The path to the mistake from the outermost value.
  package let path: [Step]
  /// The expectation that was not met.
  package let expectation: Expectation
  /// The line of the text, counted from 1; nil if the mistake has no line.
  package let line: Int?

  /// Creates a mistake from its path, the expectation and the line.
  package init(at path: [Step], expected expectation: Expectation, line: Int? = nil) {
    (self.path, self.expectation, self.line) = (path, expectation, line)
  }

  /// Returns the same mistake with its line in the text: the line of the member, or of the innermost enclosing member that
  /// exists.
  package func located(in bytes: [UInt8]) -> JSONMistake {
    guard line == nil else { return self }
    var path = path[...]
    while !path.isEmpty {
      if let position = JSONParser.position(of: Array(path), in: bytes) {
        return JSONMistake(at: self.path, expected: expectation, line: lineNumber(of: position, in: bytes))
      }
      path.removeLast()
    }
    return JSONMistake(at: self.path, expected: expectation, line: bytes.isEmpty ? nil : 1)
  }
}

extension JSONMistake {
  /// The path in the usual notation, such as `commands.unlock.factors[1]`; empty for the outermost value.
  package var pathText: String {
    var text = ""
    for step in path {
      switch step {
      case .element(let index): text += "[\(index)]"
      case .member(let name): text += (text.isEmpty ? "" : ".") + name
      }
    }
    return text
  }

  /// Finds the mistake because of which Holdfast rejects a JSON text; is nil for an accepted text.
  ///
  /// It parses the text again, for the message after a ``JSONFault``.
  package init?(in bytes: [UInt8], byteLimit: Int) {
    guard bytes.count <= byteLimit else {
      self.init(at: [], expected: .shorterText(byteLimit))
      return
    }
    var parser = JSONParser(bytes.span, otherNumbers: .refused)
    do throws(JSONFault) {
      _ = try parser.document()
      return nil
    } catch {
      let expectation: Expectation =
        switch error {
        case .malformed: .syntax
        case .duplicateMember: .uniqueMember
        case .tooDeep: .fewerLevels
        case .tooLong: .shorterText(byteLimit)
        }
      self.init(at: parser.trail, expected: expectation, line: lineNumber(of: parser.position, in: bytes))
    }
  }
}

/// Returns the line of a byte, counted from 1.
private func lineNumber(of position: Int, in bytes: [UInt8]) -> Int {
  1 + bytes.prefix(position).count { $0 == UInt8(ascii: "\n") }
}
