// The part of FoundationEssentials that ArgumentParser uses: one call of a JSON encoder, for `--experimental-dump-help`, and the
// description of an error.
//
// A release is built against this module instead of the toolchain's, which would add 5 MB to the program. The prover hashes every
// byte of itself for each proof. Names and results are those of FoundationEssentials.

/// An error that describes itself.
public protocol LocalizedError: Error {
  /// A description of what happened.
  var errorDescription: String? { get }
}

extension LocalizedError {
  /// No description.
  public var errorDescription: String? { nil }
}

/// Bytes.
public struct Data: Sendable {
  fileprivate let bytes: [UInt8]
}

extension String {
  /// An encoding of text.
  public enum Encoding: Sendable { case utf8 }

  /// Decodes text.
  public init?(data: Data, encoding: Encoding) { self.init(validating: data.bytes, as: UTF8.self) }
}

/// An encoder that writes JSON objects with sorted members, each on a line.
public final class JSONEncoder {
  /// How objects are written. An encoder that is not given both options traps: no other form is written here.
  public struct OutputFormatting: OptionSet, Sendable {
    /// The set as bits.
    public let rawValue: UInt

    /// Creates a set from bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// Each member is on a line.
    public static let prettyPrinted = OutputFormatting(rawValue: 1)
    /// Members are in the order of their names.
    public static let sortedKeys = OutputFormatting(rawValue: 2)
  }

  /// How objects are written.
  public var outputFormatting: OutputFormatting = []

  /// Creates an encoder.
  public init() {}

  /// Returns a value as JSON.
  ///
  /// - Throws: what the value's own `encode(to:)` throws.
  public func encode<Value: Encodable>(_ value: Value) throws -> Data {
    precondition(outputFormatting == [.prettyPrinted, .sortedKeys])
    let node = Node()
    try value.encode(to: TreeEncoder(node: node, codingPath: []))
    var text = ""
    node.write(to: &text, indentation: "")
    return Data(bytes: Array(text.utf8))
  }
}

/// A value of JSON that is still being made.
private final class Node {
  enum Content {
    case empty
    /// A number, true, false or null, as it is written.
    case literal(String)
    case text(String)
    case array([Node])
    case object([String: Node])
  }

  var content = Content.empty

  /// Adds a member to an object.
  func member(_ key: String) -> Node {
    guard case .object(var members) = content else { preconditionFailure() }
    content = .empty
    let node = Node()
    members[key] = node
    content = .object(members)
    return node
  }

  /// Adds an element to an array.
  func element() -> Node {
    guard case .array(var elements) = content else { preconditionFailure() }
    content = .empty
    let node = Node()
    elements.append(node)
    content = .array(elements)
    return node
  }

  var count: Int { if case .array(let elements) = content { elements.count } else { 0 } }

  func write(to text: inout String, indentation: String) {
    switch content {
    case .empty: text += "{\n\n\(indentation)}"
    case .literal(let literal): text += literal
    case .text(let value): value.write(to: &text)
    case .array(let elements):
      Self.write(elements, "[", "]", to: &text, indentation) { $0.write(to: &$1, indentation: $2) }
    case .object(let members):
      Self.write(members.sorted { $0.key < $1.key }, "{", "}", to: &text, indentation) { member, text, inner in
        member.key.write(to: &text)
        text += " : "
        member.value.write(to: &text, indentation: inner)
      }
    }
  }

  private static func write<Item>(
    _ items: [Item], _ opening: String, _ closing: String, to text: inout String, _ indentation: String,
    _ write: (Item, inout String, String) -> Void
  ) {
    let inner = indentation + "  "
    text += "\(opening)\n"
    for (index, item) in items.enumerated() {
      text += index == 0 ? inner : ",\n\(inner)"
      write(item, &text, inner)
    }
    text += "\n\(indentation)\(closing)"
  }
}

extension String {
  /// Writes this text with quotation marks, escaped as JSON asks (RFC 8259 §7), and with `\/`.
  fileprivate func write(to text: inout String) {
    text += "\""
    for scalar in unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "/": text += "\\/"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case "\u{8}": text += "\\b"
      case "\u{c}": text += "\\f"
      case "\u{0}"..<"\u{20}":
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }
}

/// The encoder that a value writes itself to.
private struct TreeEncoder: Encoder {
  let node: Node
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    if case .empty = node.content { node.content = .object([:]) }
    return KeyedEncodingContainer(Members(node: node, codingPath: codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    if case .empty = node.content { node.content = .array([]) }
    return Elements(node: node, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { Single(node: node, codingPath: codingPath) }
}

/// A single value.
private struct Single: SingleValueEncodingContainer {
  let node: Node
  let codingPath: [any CodingKey]

  func encodeNil() { node.content = .literal("null") }

  func encode<Value: Encodable>(_ value: Value) throws {
    switch value {
    case let text as String: node.content = .text(text)
    case let bool as Bool: node.content = .literal(bool ? "true" : "false")
    case let number as any BinaryInteger: node.content = .literal(String(describing: number))
    case is any BinaryFloatingPoint: preconditionFailure("the dump has no fractions")
    default: try value.encode(to: TreeEncoder(node: node, codingPath: codingPath))
    }
  }
}

/// The members of an object.
private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let node: Node
  let codingPath: [any CodingKey]

  private func encoder(_ key: any CodingKey) -> TreeEncoder {
    TreeEncoder(node: node.member(key.stringValue), codingPath: codingPath + [key])
  }

  func encodeNil(forKey key: Key) { encoder(key).node.content = .literal("null") }

  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    let encoder = encoder(key)
    try Single(node: encoder.node, codingPath: encoder.codingPath).encode(value)
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested>
  {
    encoder(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { encoder(key).unkeyedContainer() }

  func superEncoder() -> any Encoder { TreeEncoder(node: node.member("super"), codingPath: codingPath) }

  func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }
}

/// The elements of an array.
private struct Elements: UnkeyedEncodingContainer {
  let node: Node
  let codingPath: [any CodingKey]
  var count: Int { node.count }

  private func encoder() -> TreeEncoder { TreeEncoder(node: node.element(), codingPath: codingPath) }

  func encodeNil() { encoder().node.content = .literal("null") }

  func encode<Value: Encodable>(_ value: Value) throws {
    try Single(node: encoder().node, codingPath: codingPath).encode(value)
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    encoder().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder().unkeyedContainer() }

  func superEncoder() -> any Encoder { encoder() }
}
