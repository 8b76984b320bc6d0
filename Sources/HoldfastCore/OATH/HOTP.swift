/// One-time passwords from a counter.
///
/// Source: RFC 4226 §5; RFC 6238 §1.2 for hashes other than SHA-1.
public enum HOTP {
  /// Returns the code of `counter` under `key`, which may have any length.
  ///
  /// Throws if the cryptography fails. Timing: depends only on the key's byte count, the hash and the length.
  /// Inlinable, because generic code that is not specialised for its cryptography takes twice the time.
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

  /// Returns the whole HMAC from which the code of `counter` is taken: 20, 32 or 64 bytes.
  ///
  /// Source: RFC 4226 §5.3, step 1. Errors and timing are those of ``code(counter:key:hash:length:using:)``.
  public static func untruncated<Crypto: Cryptography & ~Copyable>(
    counter: UInt64, key: Span<UInt8>, hash: OATHHash, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> ByteBuffer<64> {
    let message = message(counter)
    var whole = ByteBuffer<64>(zeros: hash.byteCount)
    var bytes = whole.mutableBytes
    try hash.authenticate(message.span, key: key, using: &cryptography, into: &bytes)
    return whole
  }

  /// Returns the counter as eight bytes, most significant first.
  @inlinable
  static func message(_ counter: UInt64) -> InlineArray<8, UInt8> {
    InlineArray { UInt8(truncatingIfNeeded: counter >> UInt64(56 - 8 * $0)) }
  }
}

/// One-time passwords from the time: the code of a step is the ``HOTP`` code with the step as its counter.
///
/// Source: RFC 6238 §4.
public enum TOTP {
  /// Returns the time step that contains `unixSeconds`, counted from 1970 on. `periodSeconds` is at least 1.
  ///
  /// Source: RFC 6238 §4.2.
  public static func timeStep(at unixSeconds: UInt64, periodSeconds: UInt64) -> UInt64 {
    precondition(periodSeconds >= 1)
    return unixSeconds / periodSeconds
  }
}

/// The truncation of an HMAC to the digits that a person types.
///
/// Source: RFC 4226 §5.3. Timing: the same for every HMAC. The offset is a secret, so it selects through masks and is
/// never an address. The digits come from multiplications, since the time of a division may depend on its operands.
@usableFromInline
enum Truncation {
  /// Returns the code of `length` digits that an HMAC of at least 20 bytes gives.
  @usableFromInline
  static func code(_ whole: Span<UInt8>, _ length: CodeLength) -> BoundedText<16> {
    text(number(whole), length)
  }

  /// Returns the 31 bits of `code`, at least 20 bytes, to which its last four bits point.
  private static func number(_ code: Span<UInt8>) -> UInt32 {
    let offset = code[code.count - 1]
    // The offset's four bits move the selected bytes to the front, by 8, 4, 2 and 1 bytes.
    var head = bigEndian(code, 0, 8)
    var tail = bigEndian(code, 8, 8)
    let far = mask(offset >> 3)
    head ^= (head ^ tail) & far
    tail ^= (tail ^ bigEndian(code, 16, 4) << 32) & far
    head ^= (head ^ (head << 32 | tail >> 32)) & mask(offset >> 2)
    // At most three bytes are left to move, so that the head has all that is needed.
    head ^= (head ^ head << 16) & mask(offset >> 1)
    head ^= (head ^ head << 8) & mask(offset)
    return UInt32(truncatingIfNeeded: head >> 32) & 0x7fff_ffff
  }

  /// Returns all ones if the lowest of `bits` is 1, and zero if it is 0. The compiler must not know that there are only
  /// two values, since it would then select through a condition.
  private static func mask(_ bits: UInt8) -> UInt64 { 0 &- UInt64(opaque(bits & 1)) }

  /// Returns the last digits of `number`, as many as `length` says, with leading zeros.
  private static func text(_ number: UInt32, _ length: CodeLength) -> BoundedText<16> {
    var text = BoundedText<16>()
    var rest = number
    for index in stride(from: length.digits - 1, through: 0, by: -1) {
      // This multiplication gives exactly a tenth for every 32-bit number.
      let tenth = UInt32(truncatingIfNeeded: (UInt64(rest) &* 0xcccc_cccd) >> 35)
      text.storage[index] = 0x30 | UInt8(truncatingIfNeeded: rest &- tenth &* 10)
      rest = tenth
    }
    text.length = UInt8(length.digits)
    return text
  }

  /// Returns `count` bytes from `start` on as a number, most significant byte first.
  private static func bigEndian(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64 {
    var number: UInt64 = 0
    for index in start..<start + count { number = number << 8 | UInt64(bytes[index]) }
    return number
  }
}

/// The number of decimal digits of a code, 4 to 10.
///
/// Source: RFC 4226 §5.3, RFC 6287 §5.2.
public struct CodeLength: Sendable, Equatable {
  private let count: UInt8

  /// The number of digits.
  public var digits: Int { Int(count) }

  /// Creates a length of `digits` digits; nil unless that is from 4 to 10.
  public init?(_ digits: Int) {
    guard (4...10).contains(digits) else { return nil }
    count = UInt8(digits)
  }

  private init(unchecked digits: UInt8) {
    count = digits
  }

  /// Six digits.
  public static var six: CodeLength { CodeLength(unchecked: 6) }
  /// Eight digits.
  public static var eight: CodeLength { CodeLength(unchecked: 8) }
}

/// The hash function of a code's HMAC.
///
/// Source: RFC 4226 §5.3 (SHA-1), RFC 6238 §1.2, RFC 6287 §5.2. The raw value is what Holdfast's CBOR writes.
public enum OATHHash: UInt8, Sendable, CaseIterable {
  /// SHA-1, 20 bytes.
  case sha1 = 1
  /// SHA-256, 32 bytes.
  case sha256 = 2
  /// SHA-512, 64 bytes.
  case sha512 = 3

  /// The byte count of a hash or an HMAC: 20, 32 or 64.
  @inlinable
  public var byteCount: Int {
    switch self {
    case .sha1: 20
    case .sha256: 32
    case .sha512: 64
    }
  }
}

extension OATHHash {
  /// Writes the HMAC of `message` under `key`, both of any length, over the ``byteCount`` bytes of `code`.
  ///
  /// Source: RFC 2104. Timing: depends only on byte counts.
  @inlinable
  func authenticate<Crypto: Cryptography & ~Copyable>(
    _ message: Span<UInt8>, key: Span<UInt8>, using cryptography: inout Crypto, into code: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    switch self {
    case .sha1:
      var mac = try cryptography.hmacSHA1(key: key)
      mac.append(message)
      try mac.finish(into: &code)
    case .sha256:
      var mac = try cryptography.hmacSHA256(key: key)
      mac.append(message)
      try mac.finish(into: &code)
    case .sha512:
      var mac = try cryptography.hmacSHA512(key: key)
      mac.append(message)
      try mac.finish(into: &code)
    }
  }

  /// Returns the hash of `message`, which has ``byteCount`` bytes.
  ///
  /// Source: FIPS 180-4. Timing: depends only on byte counts.
  func digest<Crypto: Cryptography & ~Copyable>(
    _ message: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> ByteBuffer<64> {
    var digest = ByteBuffer<64>(zeros: byteCount)
    var bytes = digest.mutableBytes
    switch self {
    case .sha1:
      var hash = try cryptography.sha1()
      hash.append(message)
      try hash.finish(into: &bytes)
    case .sha256:
      var hash = try cryptography.sha256()
      hash.append(message)
      try hash.finish(into: &bytes)
    case .sha512:
      var hash = try cryptography.sha512()
      hash.append(message)
      try hash.finish(into: &bytes)
    }
    return digest
  }
}
