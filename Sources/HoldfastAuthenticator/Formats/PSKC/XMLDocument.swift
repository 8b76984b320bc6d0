import CExpat
import HoldfastCore
import HoldfastOpenSSL

/// The parser of an XML document, which is read as a whole and within fixed bounds.
///
/// Source: XML 1.0, Namespaces in XML. A document type, and with it any entity declaration, is refused. Elements are
/// nested at most 32 deep, and there are at most 50,000 of them.
package enum XMLDocument {
  static let maximumDepth = 32
  static let maximumElementCount = 50_000

  /// Parses a document and returns its root element.
  ///
  /// - Throws: `malformed` if the document is not well-formed or has a document type, `tooLarge` beyond the bounds.
  package static func parse(_ bytes: Span<UInt8>) throws(ImportFault) -> XMLElement {
    guard let count = CInt(exactly: bytes.count) else { throw .tooLarge }
    guard let parser = unsafe holdfast_xml_parser() else { throw .malformed }
    defer { unsafe XML_ParserFree(parser) }
    let builder = unsafe XMLTreeBuilder(parser)
    unsafe XML_SetUserData(parser, Unmanaged.passUnretained(builder).toOpaque())
    unsafe XML_SetElementHandler(
      parser,
      { unsafe XMLTreeBuilder.of($0)?.start($1, $2) },
      { data, _ in unsafe XMLTreeBuilder.of(data)?.end() })
    unsafe XML_SetCharacterDataHandler(parser) { unsafe XMLTreeBuilder.of($0)?.text($1, Int($2)) }
    unsafe XML_SetStartDoctypeDeclHandler(parser) { data, _, _, _, _ in
      unsafe XMLTreeBuilder.of(data)?.refuse(.malformed)
    }
    let status = unsafe bytes.withUnsafeBytes { bytes in
      unsafe XML_Parse(parser, bytes.bindMemory(to: CChar.self).baseAddress, count, 1)
    }
    if let fault = builder.fault { throw fault }
    guard status == XML_STATUS_OK, let root = builder.root else { throw .malformed }
    return root
  }
}

/// A builder that makes the element tree from the parser's callbacks.
@safe
private final class XMLTreeBuilder {
  private let parser: XML_Parser
  private(set) var root: XMLElement?
  private(set) var fault: ImportFault?
  private var open: [XMLElement] = []
  private var elementCount = 0

  init(_ parser: XML_Parser) {
    unsafe self.parser = parser
  }

  static func of(_ data: UnsafeMutableRawPointer?) -> XMLTreeBuilder? {
    guard let data = unsafe data else { return nil }
    return unsafe Unmanaged<XMLTreeBuilder>.fromOpaque(data).takeUnretainedValue()
  }

  /// Stops the parser. Only the first reason is kept.
  func refuse(_ reason: ImportFault) {
    if fault == nil { fault = reason }
    unsafe XML_StopParser(parser, XML_Bool(0))
  }

  func start(_ name: UnsafePointer<XML_Char>?, _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?) {
    guard fault == nil else { return }
    elementCount += 1
    guard open.count < XMLDocument.maximumDepth, elementCount <= XMLDocument.maximumElementCount,
      let name = unsafe name
    else { return refuse(.tooLarge) }
    let (namespace, local) = unsafe Self.split(String(cString: name))
    let element = unsafe XMLElement(namespace: namespace, name: local, attributes: Self.dictionary(attributes))
    if let parent = open.last { parent.append(element) } else { root = element }
    open.append(element)
  }

  func end() {
    if fault == nil { open.removeLast() }
  }

  func text(_ bytes: UnsafePointer<XML_Char>?, _ count: Int) {
    guard fault == nil, let element = open.last, let bytes = unsafe bytes else { return }
    let buffer = unsafe UnsafeRawBufferPointer(start: bytes, count: count).bindMemory(to: UInt8.self)
    unsafe element.append(text: buffer.span)
  }

  /// Splits a name into its namespace, which may be empty, and its local name.
  private static func split(_ name: String) -> (namespace: String, name: String) {
    let parts = name.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    return parts.count == 2 ? (String(parts[0]), String(parts[1])) : ("", name)
  }

  /// Returns the attributes that have no namespace. The parser itself refuses repeated attributes.
  private static func dictionary(
    _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?
  ) -> [String: String] {
    guard let attributes = unsafe attributes else { return [:] }
    var found: [String: String] = [:]
    var index = 0
    while let name = unsafe attributes[index], let value = unsafe attributes[index + 1] {
      let (namespace, local) = unsafe split(String(cString: name))
      if namespace.isEmpty { unsafe found[local] = String(cString: value) }
      index += 2
    }
    return found
  }
}

/// An element of a document: its name, attributes, children, and text, which may be secret.
package final class XMLElement {
  package let namespace: String
  package let name: String
  /// The attributes by name, without those that have a namespace.
  package let attributes: [String: String]
  package fileprivate(set) var children: [XMLElement] = []
  private var text = SecretBuffer(capacity: 16)

  package init(namespace: String, name: String, attributes: [String: String]) {
    self.namespace = namespace
    self.name = name
    self.attributes = attributes
  }

  package func append(_ child: XMLElement) {
    children.append(child)
  }

  package func append(text bytes: Span<UInt8>) {
    text.append(bytes)
  }

  /// Returns the child element with this name in one of `namespaces`; nil if there is none.
  ///
  /// - Throws: `malformed` if there are two.
  package func child(_ name: String, in namespaces: [String]) throws(ImportFault) -> XMLElement? {
    var found: XMLElement?
    for child in children where child.name == name && namespaces.contains(child.namespace) {
      guard found == nil else { throw .malformed }
      found = child
    }
    return found
  }

  /// Returns the text without white space. Base64 may be broken into lines at any position.
  package func compactText() -> SecretBuffer {
    text.withoutWhitespace()
  }

  /// Decodes the text as base64.
  ///
  /// - Throws: `malformed` for anything else.
  package func base64() throws(ImportFault) -> SecretBytes {
    let compact = compactText()
    do {
      return try SecretBytes(paddedBase64: compact.bytes)
    } catch {
      throw .malformed
    }
  }

  /// Returns the text without white space at both ends.
  package func trimmedText() throws(ImportFault) -> String {
    try text.trimmedText()
  }
}
