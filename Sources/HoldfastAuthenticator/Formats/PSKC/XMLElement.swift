import HoldfastCore
import HoldfastOpenSSL

/// An element of a document: its name, attributes, children, and text, which may be secret.
final class XMLElement {
  let namespace: String
  let name: String
  /// By name; attributes with a namespace are left out.
  let attributes: [String: String]
  fileprivate(set) var children: [XMLElement] = []
  private var text = SecretBuffer(capacity: 16)

  init(namespace: String, name: String, attributes: [String: String]) {
    self.namespace = namespace
    self.name = name
    self.attributes = attributes
  }

  func append(_ child: XMLElement) {
    children.append(child)
  }

  func append(text bytes: Span<UInt8>) {
    text.append(bytes)
  }

  /// The element at the end of `path`, each step the only one of its name; nil without one.
  ///
  /// `malformed` where there are two. With `namespaces` empty any will do.
  func child(_ name: String, in namespaces: [String]) throws(ImportFault) -> XMLElement? {
    var found: XMLElement?
    for child in children where child.name == name && namespaces.contains(child.namespace) {
      guard found == nil else { throw .malformed }
      found = child
    }
    return found
  }

  /// The text without white space: base64, whose lines may be broken anywhere.
  func compactText() -> SecretBuffer {
    text.withoutWhitespace()
  }

  /// The bytes of base64 text; `malformed` for anything else.
  func base64() throws(ImportFault) -> SecretBytes {
    let compact = compactText()
    do {
      return try SecretBytes(paddedBase64: compact.bytes)
    } catch {
      throw .malformed
    }
  }

  /// The text without white space at both ends.
  func trimmedText() throws(ImportFault) -> String {
    try text.trimmedText()
  }
}
