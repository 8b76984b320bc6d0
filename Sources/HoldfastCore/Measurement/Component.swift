/// The name of one measured thing, such as `app.image`: 1 to 32 bytes of printable ASCII.
public typealias ComponentID = BoundedText<32>

/// One measured thing and the SHA-256 digest of how it is now.
///
/// A thing that is absent has the digest of no bytes. Digests are what IM and DM are made of: they stay in memory.
public struct Component: Sendable, Hashable {
  /// What was measured.
  public let id: ComponentID
  /// How it is: SHA-256, 32 bytes.
  public let digest: Digest

  public init(id: ComponentID, digest: Digest) {
    self.id = id
    self.digest = digest
  }

  /// Writes `[id, digest]`.
  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 2)
    try sink.appendCBOR(text: id.bytes)
    try sink.appendCBOR(bytes: digest.bytes)
  }

  /// Reads `[id, digest]`.
  init(from reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 2)
    id = try ComponentID(componentID: reader.textString())
    digest = try reader.fixedBytes()
  }
}

extension BoundedText<32> {
  /// Copies a component's id; `unexpected` unless it is 1 to 32 bytes of printable ASCII.
  init(componentID bytes: Span<UInt8>) throws(EncodingFault) {
    guard let id = Self(bytes), id.isComponentID else { throw .unexpected }
    self = id
  }

  /// Whether this is 1 to 32 bytes of printable ASCII, space left out.
  var isComponentID: Bool {
    let bytes = bytes
    for index in bytes.indices where bytes[index] <= 0x20 || bytes[index] >= 0x7f { return false }
    return !isEmpty
  }

  /// Whether these bytes come before those of `other`.
  func precedes(_ other: Self) -> Bool {
    let left = bytes
    let right = other.bytes
    for index in 0..<min(left.count, right.count) where left[index] != right[index] {
      return left[index] < right[index]
    }
    return left.count < right.count
  }
}
