import CBarrier

/// `count` secret bytes, stored inline, wiped when they go out of scope.
///
/// There is no `==`, no `description` and no way to copy by accident. A move may leave a copy in a dead stack frame; what
/// lives long (keys, remembered tokens) is therefore kept in one place and borrowed.
public struct Secret<let count: Int>: ~Copyable, Sendable {
  @usableFromInline var storage = PinnedBytes<count>()

  /// All bytes zero, to be filled in place.
  public init() {
    storage.setZero(count: count)
  }

  /// Copies `bytes`; nil unless there are exactly `count` of them.
  public init?(copying bytes: Span<UInt8>) {
    self.init()
    do throws(EncodingFault) { try set(bytes) } catch { return nil }
  }

  /// Takes these bytes in the place of those before; `unexpected` unless there are exactly `count` of them.
  mutating func set(_ bytes: Span<UInt8>) throws(EncodingFault) {
    guard bytes.count == count else { throw .unexpected }
    unsafe bytes.copy(to: storage.start)
  }

  /// Lends the bytes to `body`.
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

  /// Becomes a second copy, made on purpose.
  public mutating func set(_ other: borrowing Secret) {
    unsafe other.storage.bytes(count: count).copy(to: storage.start)
  }

  /// A second copy.
  public borrowing func copy() -> Secret {
    var other = Secret()
    other.set(self)
    return other
  }
}

/// Overwrites `bytes` with zeros; the write is never left out.
public func wipe(_ bytes: inout MutableSpan<UInt8>) {
  unsafe bytes.withUnsafeMutableBufferPointer { (buffer) in
    guard let start = buffer.baseAddress else { return }
    unsafe wipe(start, byteCount: buffer.count)
  }
}

/// Overwrites memory that is about to be given up.
@usableFromInline func wipe(_ start: UnsafeMutablePointer<UInt8>, byteCount: Int) {
  unsafe holdfast_wipe(start, byteCount)
}

/// `value`, of which the compiler knows nothing.
public func opaque(_ value: UInt8) -> UInt8 {
  holdfast_opaque(value)
}

/// A secret that follows from a device's private key: `HKDF-SHA-256(ikm: scalar, no salt, info: label, 32 bytes)`.
///
/// Made of the key, so that there is no second secret that could be lost, or be another device's. `scalar` is big-endian;
/// `label` has at most 64 bytes.
public func derivedSecret<Crypto: Cryptography & ~Copyable>(
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

  /// Draws one.
  init<Crypto: Cryptography & ~Copyable, Random: RandomSource & ~Copyable>(
    using cryptography: inout Crypto, _ random: inout Random
  ) throws(FreshKeyFailure) {
    let scalar: Secret<32>
    let publicPoint: P256Point
    do throws(RandomFailure) { scalar = try random.secret() } catch { throw .random }
    do throws(CryptographyFailure) { publicPoint = try cryptography.p256PublicPoint(scalar: scalar) } catch {
      throw .cryptography
    }
    self.scalar = scalar
    self.publicPoint = publicPoint
  }

  /// ECDH with `peer`. Throws for a point that is not on the curve.
  borrowing func agree<Crypto: Cryptography & ~Copyable>(
    with peer: P256Point, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    var shared = Secret<32>()
    try cryptography.p256Agree(scalar: scalar, peer: peer, into: &shared)
    return shared
  }
}

/// Why there is no fresh key.
enum FreshKeyFailure: Error {
  case random, cryptography
}

/// Whether both hold the same bytes; the time taken depends on their counts alone.
func constantTimeEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
  guard left.count == right.count else { return false }
  var difference: UInt8 = 0
  for index in left.indices { difference |= left[index] ^ right[index] }
  return opaque(difference) == 0
}
