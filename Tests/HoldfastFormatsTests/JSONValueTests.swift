import HoldfastFormats
import Testing

@Suite struct JSONValueTests {
  private func parse(_ text: String) throws(JSONFault) -> JSONValue {
    try JSONValue(parsing: Array(text.utf8), byteLimit: 1000)
  }

  @Test func `every kind of value is read`() throws {
    let value = try parse(
      #" {"a" : [1, 0, 9007199254740991], "b":"x\"\\\/\n\u00e9\ud83d\ude00","c":true,"d":false,"e":null, "f":{}} "#)
    #expect(
      value
        == .object([
          ("a", .array([.integer(1), .integer(0), .integer(9_007_199_254_740_991)])),
          ("b", .string("x\"\\/\n\u{e9}\u{1f600}")), ("c", .bool(true)), ("d", .bool(false)), ("e", .null),
          ("f", .object([])),
        ]))
    #expect(value["a"]?.elements?.count == 3)
    #expect(value["none"] == nil)
  }

  @Test(arguments: [
    "", " ", "{", "}", "[", "[1,]", "[,]", "[1 2]", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, "{a:1}", "nul", "True", "-1",
    "+1",
    "01", "1.0", "1e3", "9007199254740992", "99999999999999999999999", "1 1", "\"", "\"\\x\"", "\"\\u12\"",
    "\"\\ud800\"",
    "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\u{1}\"", "'a'", "// a\n1", "\u{feff}1",
    #"{a":1}"#, "trux", "nulx", "falsx", "[1\u{b}]", "[1\u{a0}]",
  ])
  func `what is not strict JSON is malformed`(text: String) {
    #expect(throws: JSONFault.malformed) { try parse(text) }
  }

  @Test func `without fractions: a number with a fraction of zeros is an integer, and no other`() throws {
    func number(_ text: String) -> UInt64? {
      (try? JSONValue(parsing: Array(text.utf8), byteLimit: 100, otherNumbers: .withoutFraction))?.number
    }
    #expect(number("60") == 60)
    #expect(number("60.0") == 60)
    #expect(number("0.000") == 0)
    #expect(number("9007199254740991.0") == 9_007_199_254_740_991)
    for other in ["60.5", "60.", "60.0e1", "6e1", "-0.0", "-1.0", "9007199254740992.0", "00.0", "60.01"] {
      #expect(number(other) == nil, "\(other)")
    }
  }

  @Test func `other numbers are text where that is asked for`() throws {
    let text = "[-1, 1.50, 2e+3, -0.5E-7, 9007199254740992, 7]"
    let value = try JSONValue(parsing: Array(text.utf8), byteLimit: 100, otherNumbers: .asText)
    #expect(
      value
        == .array([
          .string("-1"), .string("1.50"), .string("2e+3"), .string("-0.5E-7"), .string("9007199254740992"), .integer(7),
        ]))
  }

  @Test(arguments: ["-", "01", "-01", "1.", ".5", "1e", "1e+", "--1", "+1", "0x1"])
  func `what is no number is malformed even where other numbers are text`(text: String) {
    #expect(throws: JSONFault.malformed) {
      try JSONValue(parsing: Array(text.utf8), byteLimit: 100, otherNumbers: .asText)
    }
  }

  @Test(arguments: [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf4, 0x90, 0x80, 0x80]] as [[UInt8]])
  func `a string that is not UTF-8 is malformed`(bytes: [UInt8]) {
    #expect(throws: JSONFault.malformed) {
      try JSONValue(parsing: [0x22] + bytes + [0x22], byteLimit: 100)
    }
  }

  @Test func `a member twice is refused, however it is spelt`() {
    #expect(throws: JSONFault.duplicateMember) { try parse(#"{"alg":1,"\u0061lg":2}"#) }
    #expect(throws: JSONFault.duplicateMember) { try parse(#"[{"a":{"b":1,"b":1}}]"#) }
  }

  @Test func `a name is found by its bytes, not by what Unicode takes for the same`() throws {
    #expect(try parse("{\"\u{212a}\":1}")["K"] == nil)
  }

  @Test func `sixteen levels are read and seventeen are not`() throws {
    for (opening, value, closing) in [("[", "", "]"), (#"{"a":"#, "1", "}")] {
      func nested(_ depth: Int) -> String {
        String(repeating: opening, count: depth) + value + String(repeating: closing, count: depth)
      }
      _ = try parse(nested(16))
      #expect(throws: JSONFault.tooDeep) { try parse(nested(17)) }
    }
  }

  @Test func `white space is blanks, tabs and ends of lines`() throws {
    #expect(try parse("\t\r\n [\t1\r,\n2 ]\t\r\n ") == .array([.integer(1), .integer(2)]))
  }

  @Test func `more bytes than allowed are not read`() {
    #expect(throws: JSONFault.tooLong) { try JSONValue(parsing: Array("[1]".utf8), byteLimit: 2) }
    #expect(throws: Never.self) { try JSONValue(parsing: Array("[1]".utf8), byteLimit: 3) }
  }

  @Test func `what is written compactly or prettily reads back the same`() throws {
    let value = JSONValue.object([
      ("z", .array([.integer(1), .array([]), .object([])])), ("a", .string("\u{1}\"\\\n\r\t\u{7f}é")),
      ("n", .object([("t", .bool(true)), ("x", .null)])),
    ])
    let compact = value.compact()
    #expect(
      String(decoding: compact, as: UTF8.self)
        == #"{"z":[1,[],{}],"a":"\u0001\"\\\n\r\t\u007fé","n":{"t":true,"x":null}}"#)
    #expect(try JSONValue(parsing: compact, byteLimit: 1000) == value)
    #expect(try JSONValue(parsing: value.pretty(), byteLimit: 1000) == value)
    #expect(
      String(decoding: JSONValue.string("\u{9b}31m\u{202e}").compact(), as: UTF8.self) == #""\u009b31m\u202e""#)
    #expect(
      String(decoding: JSONValue.object([("a", .array([.null])), ("b", .array([]))]).pretty(), as: UTF8.self)
        == "{\n  \"a\": [\n    null\n  ],\n  \"b\": []\n}\n")
  }

  @Test func `other members are noticed`() throws {
    #expect(try parse(#"{"a":1}"#).hasOnly(["a", "b"]))
    #expect(try !parse(#"{"a":1,"c":1}"#).hasOnly(["a", "b"]))
    #expect(try !parse("[]").hasOnly([]))
  }
}
