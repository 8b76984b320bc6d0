/// A value of a JSON text together with the way to it, so that a mistake in it can be named.
///
/// Readers of files that people write go through it instead of ``JSONValue``.
package struct JSONMember: Sendable {
  package let value: JSONValue
  /// The way to the value from the outermost one.
  package let path: [JSONMistake.Step]

  package init(_ value: JSONValue, at path: [JSONMistake.Step] = []) {
    (self.value, self.path) = (value, path)
  }

  /// A mistake in this value.
  package func mistake(_ expectation: JSONMistake.Expectation) -> JSONMistake {
    JSONMistake(at: path, expected: expectation)
  }
}

extension JSONMember {
  /// The member of that name; nil where there is none.
  package func member(_ name: String) -> JSONMember? {
    value[name].map { JSONMember($0, at: path + [.member(name)]) }
  }

  /// The member of that name. Throws where there is none.
  package func required(_ name: String) throws(JSONMistake) -> JSONMember {
    guard let member = member(name) else { throw JSONMistake(at: path + [.member(name)], expected: .presence) }
    return member
  }

  /// The members, at most `limit`. Throws where this is no object, or has more.
  package func members(atMost limit: Int = .max) throws(JSONMistake) -> [(name: String, member: JSONMember)] {
    guard let members = value.members else { throw mistake(.object) }
    guard members.count <= limit else { throw mistake(.atMost(limit)) }
    return members.map { ($0.0, JSONMember($0.1, at: path + [.member($0.0)])) }
  }

  /// Throws where this is no object, or has a member of another name.
  package func checkMembers(_ names: [String]) throws(JSONMistake) {
    for (name, member) in try members() where !names.contains(where: { haveSameBytes($0, name) }) {
      throw member.mistake(.knownMember(names))
    }
  }

  /// The elements. Throws where this is no array, or does not have `count` elements.
  package func elements(count: Int? = nil) throws(JSONMistake) -> [JSONMember] {
    guard let elements = value.elements, count == nil || elements.count == count else {
      throw mistake(.array(elementCount: count))
    }
    return elements.enumerated().map { JSONMember($0.element, at: path + [.element($0.offset)]) }
  }

  /// True or false. Throws where this is neither.
  package func flag() throws(JSONMistake) -> Bool {
    guard let flag = value.flag else { throw mistake(.flag) }
    return flag
  }

  /// An integer. Throws where this is none, or not in `range`.
  package func integer(_ range: ClosedRange<UInt64> = 0...((1 << 53) - 1)) throws(JSONMistake) -> UInt64 {
    guard let number = value.number, range.contains(number) else { throw mistake(.integer(range)) }
    return number
  }

  /// A text of `byteCounts` bytes of UTF-8. Throws where this is none.
  package func text(byteCounts: ClosedRange<Int>) throws(JSONMistake) -> String {
    guard let text = value.text, byteCounts.contains(text.utf8.count) else { throw mistake(.byteCount(byteCounts)) }
    return text
  }
}

/// A part of a JSON text that is not what its reader expects. It names members and lines, never values.
package struct JSONMistake: Error, Equatable, Sendable {
  /// A step from a value to one inside it.
  package enum Step: Equatable, Sendable {
    /// To the member of that name.
    case member(String)
    /// To the element at that index, from 0 on.
    case element(Int)
  }

  /// What was expected.
  package enum Expectation: Equatable, Sendable {
    /// That the member is there.
    case presence
    /// That there is no such member, but one of these.
    case knownMember([String])
    /// That the member stands there once.
    case uniqueMember
    /// A true or false.
    case flag
    /// An integer in this range.
    case integer(ClosedRange<UInt64>)
    /// One of these texts, each at most once where they are elements of an array.
    case text(of: [String])
    /// A text or a member's name with this many bytes of UTF-8.
    case byteCount(ClosedRange<Int>)
    /// A text or a member's name of this many hexadecimal digits, in lower case.
    case hexadecimal(digitCount: Int)
    /// An object.
    case object
    /// An array, of exactly this many elements where there is a number.
    case array(elementCount: Int?)
    /// At most this many members or elements.
    case atMost(Int)
    /// JSON (RFC 8259), with integers as the only numbers.
    case syntax
    /// At most 16 levels.
    case fewerLevels
    /// A text of at most this many bytes.
    case shorterText(Int)
  }

  /// Where it is, from the outermost value on.
  package let path: [Step]
  package let expectation: Expectation
  /// The line of the text, from 1 on; nil where the mistake is in no line.
  package let line: Int?

  package init(at path: [Step], expected expectation: Expectation, line: Int? = nil) {
    (self.path, self.expectation, self.line) = (path, expectation, line)
  }

  /// The same mistake with its line in the text that it was found in: that of the member, or of the innermost one around it
  /// that is there.
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
  /// The way as people write it, such as `commands.unlock.factors[1]`; nothing for the outermost value.
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

  /// Why a text is not JSON that Holdfast takes, and where; nil where it is.
  ///
  /// For the message after ``JSONFault``: it reads the text once more.
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

/// The line of a byte, from 1 on.
private func lineNumber(of position: Int, in bytes: [UInt8]) -> Int {
  1 + bytes.prefix(position).count { $0 == UInt8(ascii: "\n") }
}
