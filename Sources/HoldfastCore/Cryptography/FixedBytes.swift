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

/// The key id of a public key: the first 8 bytes of SHA-256 over its SEC1 uncompressed point of 65 bytes.
///
/// Source: SEC 1 §2.3.3 for the point.
public func keyID(
  of point: P256Point, using cryptography: inout some Cryptography & ~Copyable
) throws(CryptographyFailure) -> KeyID {
  var hash = try cryptography.sha256()
  hash.append(point.bytes)
  return KeyID(startOf: try hash.finish())
}

extension FixedBytes where count == 8 {
  /// The first 8 bytes of a digest.
  init(startOf digest: Digest) {
    self.init()
    for index in 0..<8 { self[index] = digest[index] }
  }
}

/// A P-256 point, SEC1 uncompressed: 0x04 ‖ x ‖ y, big-endian. Source: SEC 1 §2.3.3.
public typealias P256Point = FixedBytes<65>

extension FixedBytes where count == 65 {
  /// The uncompressed point with these coordinates, big-endian.
  public init(x: FixedBytes<32>, y: FixedBytes<32>) {
    storage = InlineArray { index in
      if index == 0 { return 0x04 }
      return index <= 32 ? x[index - 1] : y[index - 33]
    }
  }

  /// The first coordinate, big-endian.
  public var x: FixedBytes<32> { coordinate(from: 1) }
  /// The second coordinate, big-endian.
  public var y: FixedBytes<32> { coordinate(from: 33) }

  private func coordinate(from offset: Int) -> FixedBytes<32> {
    var part = FixedBytes<32>()
    for index in 0..<32 { part[index] = self[offset + index] }
    return part
  }
}
