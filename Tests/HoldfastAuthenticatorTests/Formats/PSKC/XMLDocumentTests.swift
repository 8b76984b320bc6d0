import Testing

import HoldfastAuthenticator

struct XMLDocumentTests {
  private func reason(_ text: String) -> ImportFault? {
    do {
      _ = try XMLDocument.parse(Array(text.utf8).span)
      return nil
    } catch {
      return error
    }
  }

  @Test(
    "a document type is refused, and with it bombs, parameter entities and files from outside",
    arguments: [
      "<!DOCTYPE a><a/>", #"<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>"#,
      #"<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>"#,
      #"<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;">]><a>&d;</a>"#,
      #"<!DOCTYPE a [<!ENTITY % b SYSTEM "http://127.0.0.1/x">%b;]><a/>"#, "<!DOCTYPE a [<!ELEMENT a ANY>]><a/>",
      #"<!DOCTYPE a [<!ATTLIST a b CDATA "c">]><a/>"#,
    ])
  func documentTypes(text: String) {
    #expect(reason(text) == .malformed)
    #expect(fault(text, .pskc) == .malformed)
  }

  @Test(
    "what is not well-formed is refused",
    arguments: [
      "", " ", "<", "<a", "<a>", "<a></b>", "<a/><b/>", "a<a/>", "<a/>a", "<a>&b;</a>", "<a>&#0;</a>", "<a>&#x1b;</a>",
      "<a b=\"1\" b=\"2\"/>", "<a b=1/>", "<p:a/>", "<a xmlns:p=\"\"/>", "<a xmlns=\"&#10;b\"/>", "<a><![CDATA[</a>",
      "<a><!-- -- --></a>",
      "<?xml version=\"1.0\" encoding=\"none\"?><a/>", " <?xml version=\"1.0\"?><a/>",
    ])
  func malformed(text: String) {
    #expect(reason(text) == .malformed)
  }

  @Test("bytes that are not UTF-8, and every beginning of a document, are refused")
  func truncated() {
    let bytes: [UInt8] = [0x3c, 0x61, 0x3e, 0xff, 0x3c, 0x2f, 0x61, 0x3e]
    #expect(throws: ImportFault.malformed) { _ = try XMLDocument.parse(bytes.span) }
    let whole = ContainerText.figure6.text
    for count in stride(from: 0, to: whole.utf8.count - 1, by: 7) {
      #expect(fault(String(whole.prefix(count)), .pskc) == .malformed)
    }
  }

  @Test("elements are at most 32 deep and 50,000 in number")
  func bounds() {
    func nested(_ depth: Int) -> String {
      String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
    }
    #expect(reason(nested(32)) == nil)
    #expect(reason(nested(33)) == .tooLarge)
    #expect(reason(nested(100_000)) == .tooLarge)
    #expect(reason("<a>" + String(repeating: "<b/>", count: 49_999) + "</a>") == nil)
    #expect(reason("<a>" + String(repeating: "<b/>", count: 50_000) + "</a>") == .tooLarge)
  }

  @Test("a container has at most a thousand keys")
  func keys() throws {
    let package = ContainerText.key()
    #expect(try read(ContainerText(packages: [String](repeating: package, count: 1000)).text, .pskc).count == 1000)
    #expect(fault(ContainerText(packages: [String](repeating: package, count: 1001)).text, .pskc) == .tooLarge)
  }

  @Test("another root, or one in another namespace, is no container")
  func roots() {
    #expect(fault("<KeyContainer Version=\"1.0\"/>", .pskc) == .malformed)
    #expect(fault("<a xmlns=\"urn:ietf:params:xml:ns:keyprov:pskc\" Version=\"1.0\"/>", .pskc) == .malformed)
    #expect(fault("<KeyContainer xmlns=\"urn:ietf:params:xml:ns:keyprov:pskc\"/>", .pskc) == .unsupportedFeature)
  }

  @Test("text is joined over comments, references and CDATA sections")
  func text() throws {
    let root = try XMLDocument.parse(Array("<a> x<!-- y -->&amp;<![CDATA[<]]>&#x7a; </a>".utf8).span)
    #expect(try root.trimmedText() == "x&<z")
  }
}
