import HoldfastFormats
import Testing

@Suite struct JSONMemberTests {
  private func member(_ text: String) throws -> JSONMember {
    JSONMember(try JSONValue(parsing: Array(text.utf8), byteLimit: 4096))
  }

  @Test func `a reader has the way to each value`() throws {
    let root = try member(#"{"a": {"b": [1, {"c": true}]}}"#)
    let element = try root.required("a").required("b").elements()[1]
    #expect(try element.required("c").flag())
    #expect(try element.required("c").path == [.member("a"), .member("b"), .element(1), .member("c")])
    #expect(element.member("d") == nil)
  }

  @Test func `what is missing, unknown or of another kind is named with what was expected`() throws {
    let root = try member(#"{"a": {"n": 7, "t": "xyz", "l": [1, 2]}, "b": null}"#)
    let a = try root.required("a")
    let way: [JSONMistake.Step] = [.member("a")]
    func expect(_ mistake: JSONMistake, _ body: () throws -> Any) {
      #expect(throws: mistake) { _ = try body() }
    }
    expect(JSONMistake(at: way + [.member("x")], expected: .presence)) { try a.required("x") }
    expect(JSONMistake(at: way + [.member("n")], expected: .integer(0...6))) { try a.required("n").integer(0...6) }
    expect(JSONMistake(at: way + [.member("n")], expected: .flag)) { try a.required("n").flag() }
    expect(JSONMistake(at: way + [.member("t")], expected: .byteCount(1...2))) {
      try a.required("t").text(byteCounts: 1...2)
    }
    expect(JSONMistake(at: way + [.member("l")], expected: .array(elementCount: 3))) {
      try a.required("l").elements(count: 3)
    }
    expect(JSONMistake(at: way + [.member("t")], expected: .knownMember(["n", "l"]))) {
      try a.checkMembers(["n", "l"])
    }
    expect(JSONMistake(at: way, expected: .atMost(2))) { try a.members(atMost: 2) }
    expect(JSONMistake(at: [.member("b")], expected: .object)) { try root.required("b").members() }
  }

  @Test func `a mistake is located in the line of its member, or of the innermost one around it that is there`() throws
  {
    let text = Array("{\n\"a\":\n {\"b\":\n  [1,\n   2]}}".utf8)
    func line(_ path: [JSONMistake.Step]) -> Int? {
      JSONMistake(at: path, expected: .presence).located(in: text).line
    }
    #expect(line([.member("a")]) == 2)
    #expect(line([.member("a"), .member("b")]) == 3)
    #expect(line([.member("a"), .member("b"), .element(1)]) == 5)
    #expect(line([.member("a"), .member("c")]) == 2)
    #expect(line([.member("c")]) == 1)
    #expect(JSONMistake(at: [], expected: .object).located(in: []).line == nil)
  }

  @Test(arguments: [
    ("{\n\"a\": 1,\n\"a\": 2}", JSONMistake.Expectation.uniqueMember, [JSONMistake.Step.member("a")], 3),
    ("{\n\"a\": [1,\n 2.5]}", .syntax, [.member("a"), .element(1)], 3), ("", .syntax, [], 1),
    ("{}\n\nx", .syntax, [], 3),
    (String(repeating: "[", count: 17), .fewerLevels, Array(repeating: .element(0), count: 16), 1),
  ])
  func `text that is not JSON says where it is not`(
    text: String, expectation: JSONMistake.Expectation, path: [JSONMistake.Step], line: Int
  ) {
    let mistake = JSONMistake(in: Array(text.utf8), byteLimit: 100)
    #expect(mistake == JSONMistake(at: path, expected: expectation, line: line))
  }

  @Test func `good text has no mistake, and text that is too long has no line`() {
    #expect(JSONMistake(in: Array("{}".utf8), byteLimit: 2) == nil)
    #expect(JSONMistake(in: Array("{} ".utf8), byteLimit: 2) == JSONMistake(at: [], expected: .shorterText(2)))
  }
}
