import CBarrier

/// An array of `count` secret bytes, stored inline, which are wiped when they go out of scope.
///
/// It has no `==` and no `description`, and cannot be copied by accident. A move may leave a copy in a dead stack
/// frame. Secrets that live long (keys, remembered tokens) are therefore kept in one place and borrowed.
public struct Secret<let count: Int>: ~Copyable, Sendable {
  @usableFromInline var storage = PinnedBytes<count>()

  /// Creates a secret whose bytes are all zero, to be filled in place.
  public init() {
    storage.setZero(count: count)
  }

  /// Copies `bytes`; nil unless there are exactly `count` of them.
  public init?(copying bytes: Span<UInt8>) {
    self.init()
    do throws(EncodingFault) { try set(bytes) } catch { return nil }
  }

  /// Replaces the bytes. Throws `unexpected` unless there are exactly `count` of them.
  public mutating func set(_ bytes: Span<UInt8>) throws(EncodingFault) {
    guard bytes.count == count else { throw .unexpected }
    unsafe bytes.copy(to: storage.start)
  }

  /// Lends the bytes to `body` for reading.
  public borrowing func withBytes<Result: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(storage.bytes(count: count))
  }

  /// Lends the bytes to `body` for writing.
  public mutating func withMutableBytes<Result: ~Copyable, Failure: Error>(
    _ body: (inout MutableSpan<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var span = storage.mutableBytes(count: count)
    return try body(&span)
  }

  /// Replaces the bytes with a deliberate copy of those of `other`.
  public mutating func set(_ other: borrowing Secret) {
    unsafe other.storage.bytes(count: count).copy(to: storage.start)
  }

  /// Returns a deliberate second copy.
  public borrowing func copy() -> Secret {
    var other = Secret()
    other.set(self)
    return other
  }
}

/// Overwrites `bytes` with zeros. The compiler never removes this write.
public func wipe(_ bytes: inout MutableSpan<UInt8>) {
  unsafe bytes.withUnsafeMutableBufferPointer { (buffer) in
    guard let start = buffer.baseAddress else { return }
    unsafe wipe(start, byteCount: buffer.count)
  }
}

/// Overwrites memory with zeros before it is released.
@usableFromInline func wipe(_ start: UnsafeMutablePointer<UInt8>, byteCount: Int) {
  unsafe holdfast_wipe(start, byteCount)
}

/// Returns `value` in a way that hides it from the optimiser.
package func opaque(_ value: UInt8) -> UInt8 {
  holdfast_opaque(value)
}

/// Returns `value`, which follows from a secret and may be known: only after this may a branch depend on it.
package func revealed(_ value: UInt8) -> UInt8 {
  holdfast_reveal(value)
}

/// Returns whether a character is `other`. The character may be secret, and the result is not: `other` belongs to the structure of a
/// text, and to no secret in it.
func isCharacter(_ character: UInt8, _ other: UInt8) -> Bool {
  #if hasFeature(Embedded)
  // A branch, which is the same for every secret, and shorter. `Tests/Firmware` compares all branches over random secrets.
  character == other
  #else
  revealed(character ^ other) == 0
  #endif
}

/// Returns whether a character has any of some bits, as every character of a secret has, or none.
func hasBits(_ character: UInt8, _ bits: UInt8) -> Bool {
  #if hasFeature(Embedded)
  character & bits != 0
  #else
  revealed(character & bits) != 0
  #endif
}

/// Derives a secret from a device's private key: `HKDF-SHA-256(ikm: scalar, no salt, info: label, 32 bytes)`.
///
/// Since it comes from the key, there is no second secret that could be lost or belong to another device. `scalar` is
/// big-endian. `label` has at most 64 bytes; a longer one throws.
///
/// Source: RFC 5869 §2.
package func derivedSecret<Crypto: Cryptography & ~Copyable>(
  _ label: StaticString, from scalar: borrowing Secret<32>, using cryptography: inout Crypto
) throws(CryptographyFailure) -> Secret<32> {
  var info = ByteBuffer<64>()
  do throws(EncodingFault) { try info.append(label) } catch { throw CryptographyFailure() }
  var secret = Secret<32>()
  try secret.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
    try scalar.withBytes { (inputKey: Span<UInt8>) throws(CryptographyFailure) in
      try cryptography.hkdfSHA256(inputKey: inputKey, salt: Span(), info: info.bytes, into: &output)
    }
  }
  return secret
}

/// A P-256 key pair for one agreement.
struct FreshKey: ~Copyable {
  let publicPoint: P256Point
  private let scalar: Secret<32>

  /// Draws a random key pair.
  init<Crypto: Cryptography & ~Copyable, Random: RandomSource & ~Copyable>(
    using cryptography: inout Crypto, _ random: inout Random
  ) throws(DeviceFault) {
    let scalar: Secret<32>
    let publicPoint: P256Point
    do throws(RandomFailure) { scalar = try random.secret() } catch { throw .random }
    do throws(CryptographyFailure) { publicPoint = try cryptography.p256PublicPoint(scalar: scalar) } catch {
      throw .cryptography
    }
    self.scalar = scalar
    self.publicPoint = publicPoint
  }

  /// Returns the ECDH result with `peer`, 32 bytes. Throws for a point that is not on the curve.
  borrowing func agree<Crypto: Cryptography & ~Copyable>(
    with peer: P256Point, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    var shared = Secret<32>()
    try cryptography.p256Agree(scalar: scalar, peer: peer, into: &shared)
    return shared
  }
}

/// Returns whether both hold the same bytes. Timing: depends only on their counts.
package func constantTimeEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  guard left.count == right.count else { return false }
  var difference: UInt8 = 0
  for index in left.indices { difference |= left[index] ^ right[index] }
  return revealed(difference) == 0
}
