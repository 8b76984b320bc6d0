/// One-time passwords from a counter.
///
/// Source: RFC 4226 §5; RFC 6238 §1.2 for hashes other than SHA-1.
public enum HOTP {
  /// The code of `counter` under `key`, of any length.
  ///
  /// Throws when the cryptography fails. Timing: depends on the key's byte count, the hash and the length alone. Inlinable,
  /// because generic code that is not made for its cryptography takes twice the time.
  @inlinable
  public static func code<Crypto: Cryptography & ~Copyable>(
    counter: UInt64, key: Span<UInt8>, hash: OATHHash, length: CodeLength, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> BoundedText<16> {
    let message = message(counter)
    var storage = InlineArray<64, UInt8>(repeating: 0)
    var whole = storage.mutableSpan
    defer { wipe(&whole) }
    var code = whole._mutatingExtracting(first: hash.byteCount)
    try hash.authenticate(message.span, key: key, using: &cryptography, into: &code)
    return Truncation.code(code.span, length)
  }

  /// The whole HMAC that the code of `counter` is taken from: 20, 32 or 64 bytes.
  ///
  /// Source: RFC 4226 §5.3, step 1. Throws and timing as ``code(counter:key:hash:length:using:)``.
  public static func untruncated<Crypto: Cryptography & ~Copyable>(
    counter: UInt64, key: Span<UInt8>, hash: OATHHash, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> ByteBuffer<64> {
    let message = message(counter)
    var whole = ByteBuffer<64>(zeros: hash.byteCount)
    var bytes = whole.mutableBytes
    try hash.authenticate(message.span, key: key, using: &cryptography, into: &bytes)
    return whole
  }

  /// The counter in eight bytes, most significant first.
  @inlinable
  static func message(_ counter: UInt64) -> InlineArray<8, UInt8> {
    InlineArray { UInt8(truncatingIfNeeded: counter >> UInt64(56 - 8 * $0)) }
  }
}
