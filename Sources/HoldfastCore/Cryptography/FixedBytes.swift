/// An array of `count` public bytes, stored inline, for identifiers, nonces, digests and proofs on the wire.
///
/// `Kind` says what the bytes are, and has no value: a ``Nonce`` is not a ``DeviceID``, although both have 16 bytes. To make one of
/// the other, write `DeviceID(nonce.bytes)`.
///
/// `==` is not constant-time: keep secrets in ``Secret``.
public struct TypedBytes<Kind, let count: Int>: Sendable {
  @usableFromInline var storage: InlineArray<count, UInt8>

  /// Creates a value whose bytes are all zero.
  @inlinable
  public init() {
    storage = InlineArray(repeating: 0)
  }

  /// Copies `bytes`; nil unless there are exactly `count` of them.
  public init?(_ bytes: Span<UInt8>) {
    guard bytes.count == count else { return nil }
    storage = InlineArray { bytes[$0] }
  }

  /// The number of bytes of a value.
  public static var byteCount: Int { count }

  /// The bytes, in order.
  public var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    @_transparent
    get { storage.span }
  }

  /// The bytes, which the caller may change in place.
  public var mutableBytes: MutableSpan<UInt8> {
    @_lifetime(&self)
    @inlinable
    mutating get { storage.mutableSpan }
  }

  /// The byte at `index`, below `count`.
  public subscript(index: Int) -> UInt8 {
    get { storage[index] }
    set { storage[index] = newValue }
  }
}

extension TypedBytes: Hashable {
  /// Returns whether both hold the same bytes. Not constant-time.
  public static func == (left: Self, right: Self) -> Bool {
    left.bytes.elementsEqual(right.bytes)
  }

  /// Feeds the bytes to `hasher`.
  public func hash(into hasher: inout Hasher) {
    for index in 0..<count { hasher.combine(storage[index]) }
  }
}

/// Bytes that are nothing more special.
public typealias FixedBytes<let count: Int> = TypedBytes<Bytes, count>

/// The id of a key, 8 bytes. For a public key, it is the first 8 bytes of SHA-256 over the SEC 1 uncompressed point;
/// for other keys, see the function that returns the id.
public typealias KeyID = TypedBytes<Bytes.KeyID, 8>
/// The id of a device: 16 random bytes.
public typealias DeviceID = TypedBytes<Bytes.DeviceID, 16>
/// The audience of a bulletin: a device id, or the id of a group of devices, 16 bytes.
public typealias AudienceID = TypedBytes<Bytes.AudienceID, 16>
/// The id (`jti`) of a measurement token, 16 bytes.
public typealias TokenID = TypedBytes<Bytes.TokenID, 16>
/// A reference to a token: the first 16 bytes of SHA-256 over the whole token.
public typealias TokenReference = TypedBytes<Bytes.TokenReference, 16>
/// A nonce of a challenge or a measurement proof, 16 random bytes.
public typealias Nonce = TypedBytes<Bytes.Nonce, 16>
/// The tag of AES-GCM, 16 bytes. Source: NIST SP 800-38D, section 5.2.1.2.
public typealias AuthenticationTag = TypedBytes<Bytes.AuthenticationTag, 16>
/// A SHA-256 digest, 32 bytes.
public typealias Digest = TypedBytes<Bytes.Digest, 32>
/// An HMAC-SHA-256, 32 bytes: a measurement proof, or the proof that the sender of a message knows a key.
public typealias MAC = TypedBytes<Bytes.MAC, 32>
/// The salt of a measurement configuration, 32 random bytes.
public typealias ConfigurationSalt = TypedBytes<Bytes.ConfigurationSalt, 32>

/// The kinds of ``TypedBytes``.
public enum Bytes {
  /// See the type of this name.
  public enum KeyID {}
  /// See the type of this name.
  public enum DeviceID {}
  /// See the type of this name.
  public enum AudienceID {}
  /// See the type of this name.
  public enum TokenID {}
  /// See the type of this name.
  public enum TokenReference {}
  /// See the type of this name.
  public enum Nonce {}
  /// See the type of this name.
  public enum AuthenticationTag {}
  /// See the type of this name.
  public enum Digest {}
  /// See the type of this name.
  public enum MAC {}
  /// See the type of this name.
  public enum ConfigurationSalt {}
  /// See the type of this name.
  public enum P256Point {}
}

extension Span where Element == UInt8 {
  /// Returns whether both hold the same bytes. Not constant-time, so for public bytes only.
  public func elementsEqual(_ other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] != other[index] { return false }
    return true
  }

  /// Returns whether these are exactly the UTF-8 bytes of `text`. Not constant-time.
  public func elementsEqual(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    for index in indices where unsafe self[index] != text.utf8Start[index] { return false }
    return true
  }
}

/// Returns the key id of a public key: the first 8 bytes of SHA-256 over its SEC 1 uncompressed point of 65 bytes.
///
/// Source: SEC 1 §2.3.3 for the point.
public func keyID(
  of point: P256Point, using cryptography: inout some Cryptography & ~Copyable
) throws(CryptographyFailure) -> KeyID {
  var hash = try cryptography.sha256()
  hash.append(point.bytes)
  return KeyID(startOf: try hash.finish())
}

extension KeyID {
  /// Copies the first 8 bytes of a digest.
  public init(startOf digest: Digest) {
    self.init()
    for index in 0..<8 { self[index] = digest[index] }
  }
}

/// A P-256 point in SEC 1 uncompressed form: 0x04 ‖ x ‖ y, big-endian, 65 bytes. Source: SEC 1 §2.3.3.
public typealias P256Point = TypedBytes<Bytes.P256Point, 65>

extension P256Point {
  /// Creates the uncompressed point with these coordinates, big-endian.
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
