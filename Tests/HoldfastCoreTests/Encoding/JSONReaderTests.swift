import HoldfastCore
import TestSupport
import Testing

/// Strict JSON as headers and claims have it, from any sender.
@Suite struct JSONReaderTests {
  /// Anybody can send a token's header: doubling its depth must not square the work. Were each value read again for every
  /// member after it, this one would take hours.
  @Test(.timeLimit(.minutes(1)))
  func `a deeply nested header is read in no time`() throws {
    let fillers = (0..<17).map { #","\#($0)":1"# }.joined()
    var text = "1"
    for _ in 0..<8 { text = #"{"":"# + text + fillers + "}" }
    #expect(text.utf8.count < 1024)
    #expect(try names(of: text).count == 18)
  }

  @Test(arguments: [
    #"{"a":1,"a":2}"#, #"{"a":{"b":[1,"}"]},"a":1}"#, #"{"a":[{"b":1},{}],"\u0061":1}"#, #"{"a":"\",","b":1,"a":1}"#,
    #"{"x":{"a":1,"b":{},"a":2}}"#, #"{"x":[{"a":1,"a":2}],"y":1}"#, #"{ "a" : 1 , "b" : [ 1 , 2 ] , "a" : 3 }"#,
  ])
  func `a member that is there twice is malformed at any depth`(_ text: String) {
    #expect(throws: EncodingFault.malformed) { try names(of: text) }
  }

  @Test(arguments: [
    (#"{"a":{"a":1},"b":{"a":1}}"#, 2), (#"{"a":"a","b":["a",{"a":"}"}],"c":"\"","d":null}"#, 4), ("{ }", 0),
    (#"{ "a" : { } , "b" : [ ] , "c" : "," , "d" : 12 }"#, 4),
  ])
  func `a name may come again inside a value`(_ text: String, _ count: Int) throws {
    #expect(try names(of: text).count == count)
  }

  @Test(arguments: [#"{"a":"#, #"{"a": "#, #"{"a":["#, #"{"a":[1, "#, #"{"a":{"b": "#, "{", #"{"a""#])
  func `a text that ends before a value is malformed`(_ text: String) {
    #expect(throws: EncodingFault.malformed) { try names(of: text) }
  }

  @Test(arguments: [#"{"\"#, #"{"a\"#, #"{"a":"\"#, #"{"a":"b\u"#, #"{"a":"b\u00"#, #"{"a":"\ud83d\ude0"#])
  func `a text that ends within an escape is malformed`(_ text: String) {
    #expect(throws: EncodingFault.malformed) { try names(of: text) }
  }

  @Test(arguments: [
    (#""\ud800\udc00""#, "\u{10000}"), (#""\udbff\udfff""#, "\u{10ffff}"), (#""\ud83d\ude00""#, "\u{1f600}"),
  ])
  func `two halves of a pair are one character, from the first to the last`(_ escaped: String, _ text: String) throws {
    #expect(try names(of: "{\(escaped):1}") == [text])
  }

  @Test(arguments: [#"\ud800\udbff"#, #"\ud800\ue000"#, #"\ud800"#, #"\udc00"#, #"\udfff\ud800"#, #"\ud800\n"#])
  func `half of a pair is no character`(_ escaped: String) {
    #expect(throws: EncodingFault.malformed) { try names(of: "{\"\(escaped)\":1}") }
  }

  @Test func `a text that ends before a string is malformed, and a value of another type is unexpected`() throws {
    for (text, fault) in [("", EncodingFault.malformed), (" \n", .malformed), ("1", .unexpected), ("{}", .unexpected)] {
      let bytes = Array(text.utf8)
      var reader = try JSONReader(bytes.span)
      var seen: EncodingFault?
      do throws(EncodingFault) { _ = try reader.string() } catch { seen = error }
      #expect(seen == fault, "\(text)")
    }
  }

  @Test func `space may stand around everything, and nothing else`() throws {
    for space in ["", " ", "\t\r\n "] {
      let words = [
        "", "{", #""a""#, ":", "[", "1", ",", "{", "}", ",", "null", "]", ",", #""b""#, ":", #""c""#, "}", "",
      ]
      #expect(try names(of: words.joined(separator: space)) == ["a", "b"])
      for word in ["[", ",", "1"] {
        var more = words
        more.insert(word, at: more.count - 1)
        #expect(throws: EncodingFault.malformed) { try names(of: more.joined(separator: space)) }
      }
    }
  }

  /// The names of an object's members, whose values are skipped.
  private func names(of text: String) throws -> [String] {
    let bytes = Array(text.utf8)
    var names: [String] = []
    var reader = try JSONReader(bytes.span)
    var object = try reader.beginObject()
    while let name = try reader.nextMember(&object) {
      let text: BoundedText<32>? = name.bounded()
      names.append(text?.description ?? "")
      try reader.skipValue()
    }
    try reader.finish()
    return names
  }
}
