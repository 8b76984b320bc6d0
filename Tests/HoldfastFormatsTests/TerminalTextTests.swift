import HoldfastFormats
import Testing

struct TerminalTextTests {
  /// Each is invisible, or turns or breaks the line.
  static let unseen: [Unicode.Scalar] = [
    "\u{0}", "\n", "\r", "\t", "\u{1b}", "\u{7f}", "\u{85}", "\u{9b}", "\u{a0}", "\u{ad}", "\u{34f}", "\u{61c}",
    "\u{115f}",
    "\u{1680}", "\u{180e}", "\u{2000}", "\u{2007}", "\u{200b}", "\u{200c}", "\u{200d}", "\u{200e}", "\u{200f}",
    "\u{2028}",
    "\u{2029}", "\u{202a}", "\u{202e}", "\u{202f}", "\u{205f}", "\u{2060}", "\u{2066}", "\u{2069}", "\u{206f}",
    "\u{2800}", "\u{fffc}", "\u{1d159}", "\u{13441}", "\u{13442}", "\u{16fe4}",
    "\u{3000}", "\u{3164}", "\u{e000}", "\u{fe00}", "\u{fe0f}", "\u{feff}", "\u{ffa0}", "\u{fff9}", "\u{1d173}",
    "\u{e0001}",
    "\u{e0041}", "\u{e007f}", "\u{e0100}", "\u{f0000}", "\u{10fffd}", "\u{378}", "\u{ffff}",
  ]

  @Test(arguments: unseen) func `a character that nobody sees is written as its number`(scalar: Unicode.Scalar) {
    let escape = "\\u{\(String(scalar.value, radix: 16))}"
    let text = "unlock" + String(Character(scalar))
    #expect(text.printable == "unlock" + escape)
    #expect(text.quoted == "\"unlock\(escape)\"")
  }

  @Test(arguments: ["", "unlock", "Łucja", "открыть", "開ける", "फ़ाइल", "🔒 a-b_c.d/e:f", "it's"])
  func `what people write is left as it is`(text: String) {
    #expect(text.printable == text)
    #expect(text.quoted == "\"\(text)\"")
  }

  @Test func `a value cannot pass for the fields next to it`() {
    #expect("a  subject=boss  user=alice".quoted == #""a  subject=boss  user=alice""#)
    #expect(#"a"  subject="boss"#.quoted == #""a\"  subject=\"boss""#)
    #expect(#"a\"  subject="boss"#.quoted == #""a\\\"  subject=\"boss""#)
    #expect("".quoted == #""""#)
  }

  @Test func `a typed escape is told from an escaped character`() {
    #expect(#"\u{1b}"#.quoted == #""\\u{1b}""#)
    #expect("\u{1b}".quoted == #""\u{1b}""#)
    #expect(#"\u{1b}"#.printable == #"\u{5c}u{1b}"#)
    #expect("\u{1b}".printable == #"\u{1b}"#)
    #expect("\\\u{1b}".printable == #"\\u{1b}"#)
    #expect(#"\\u{1b}"#.printable == #"\\u{5c}u{1b}"#)
    #expect(#"it'\''s C:\dir"#.printable == #"it'\''s C:\dir"#)
  }

  @Test func `a mark at the beginning is not drawn over the quotation mark`() {
    #expect("\u{301}a".quoted == #""\u{301}a""#)
    #expect("a\u{301}".quoted == "\"a\u{301}\"")
  }
}
