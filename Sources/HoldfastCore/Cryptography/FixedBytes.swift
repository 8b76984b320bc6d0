/// `count` public bytes, stored inline: identifiers, nonces, digests and proofs on the wire.
///
/// `==` is not constant-time: keep secrets in ``Secret``.
public struct FixedBytes<let count: Int>: Sendable {
  @usableFromInline var storage: InlineArray<count, UInt8>

  /// All bytes zero.
  public init() {
    storage = InlineArray(repeating: 0)
  }

  /// Copies `bytes`; nil unless there are exactly `count` of them.
  public init?(_ bytes: Span<UInt8>) {
    guard bytes.count == count else { return nil }
    storage = InlineArray { bytes[$0] }
  }

  /// How many bytes a value has.
  public static var byteCount: Int { count }

  /// The bytes, in order.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    @_transparent
    get { storage.span }
  }

  /// The bytes, to be written in place.
  public var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    mutating get { storage.mutableSpan }
  }

  public subscript(index: Int) -> UInt8 {
    get { storage[index] }
    set { storage[index] = newValue }
  }
}

extension FixedBytes: Hashable {
  public static func == (left: FixedBytes, right: FixedBytes) -> Bool {
    left.bytes.elementsEqual(right.bytes)
  }

  public func hash(into hasher: inout Hasher) {
    for index in 0..<count { hasher.combine(storage[index]) }
  }
}

/// First 8 bytes of SHA-256 over a public key's SEC1 uncompressed point; for other keys, see what names them.
public typealias KeyID = FixedBytes<8>
/// 16 random bytes that name one device.
public typealias DeviceID = FixedBytes<16>
/// The `jti` of a measurement token.
public typealias TokenID = FixedBytes<16>
/// A SHA-256 digest.
public typealias Digest = FixedBytes<32>

extension Span where Element == UInt8 {
  /// Whether both hold the same bytes. Not constant-time: for public bytes.
  public func elementsEqual(_ other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] != other[index] { return false }
    return true
  }

  /// Whether these are exactly the bytes of `text`.
  public func elementsEqual(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    for index in indices where unsafe self[index] != text.utf8Start[index] { return false }
    return true
  }
}
