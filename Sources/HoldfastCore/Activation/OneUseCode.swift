/// A code that a device's owner hands to a user: 20 characters of base32 with 100 random bits, and a check character.
///
/// Source: Crockford's base32, check symbols modulo 37. The code is a secret. It is written as
/// `XXXX-XXXX-XXXX-XXXX-XXXX-X`.
public struct OneUseCode: ~Copyable, Sendable {
  /// The number of bytes of the written form: 20 characters, 5 hyphens and the check character.
  package static let textByteCount = 26
  private static let characterCount = 20

  /// The characters in upper case, without the check character.
  private let characters: Secret<20>

  private init(characters: consuming Secret<20>) {
    self.characters = characters
  }

  /// Draws a random code whose check character is a letter or a digit, so that no shell interprets it.
  ///
  /// - Throws: if the random source fails, or if 128 draws give no such code.
  package static func random<Random: RandomSource & ~Copyable>(
    using random: inout Random
  ) throws(RandomFailure) -> OneUseCode {
    for _ in 0..<128 {
      var characters: Secret<20> = try random.secret()
      characters.withMutableBytes { (bytes: inout MutableSpan<UInt8>) in
        for index in bytes.indices { bytes[index] = CrockfordBase32.character(bytes[index] & 31) }
      }
      let code = OneUseCode(characters: characters)
      if code.checkValue < 32 { return code }
    }
    throw RandomFailure()
  }

  /// Reads a code that a user typed, ASCII.
  ///
  /// Letters may be in upper or lower case, `O` counts as 0, `I` and `L` count as 1, and hyphens and spaces may occur
  /// anywhere. The result is nil if there is any other character, if the number of characters is wrong, or if the check
  /// character is wrong.
  public init?(_ text: Span<UInt8>) {
    var characters = Secret<20>()
    var count = 0
    var check: UInt8 = 0xff
    let isWellFormed = characters.withMutableBytes { (bytes: inout MutableSpan<UInt8>) in
      for index in text.indices {
        let character = text[index]
        if character == 0x2d || character == 0x20 { continue }
        let value = CrockfordBase32.value(character)
        guard value & 0x80 == 0, count <= Self.characterCount else { return false }
        if count == Self.characterCount { check = value } else { bytes[count] = CrockfordBase32.character(value) }
        count += 1
      }
      return count == Self.characterCount + 1
    }
    self.init(characters: characters)
    guard isWellFormed, check == checkValue else { return nil }
  }

  /// Writes the code as ``textByteCount`` bytes of ASCII.
  package borrowing func write<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try characters.withBytes { (bytes) throws(Sink.Failure) in
      for index in bytes.indices {
        if index > 0 && index % 4 == 0 { try sink.append(0x2d) }
        try sink.append(bytes[index])
      }
    }
    try sink.append(0x2d)
    try sink.append(CrockfordBase32.character(checkValue))
  }

  /// Derives the key of both ends' MACs: `HKDF(ikm: the 20 characters, no salt, info: the purpose's label)`, 32 bytes.
  ///
  /// Source: RFC 5869 §2; docs/protocol.md, Activation and Unlocking.
  package borrowing func key<Crypto: Cryptography & ~Copyable>(
    for purpose: Purpose, using cryptography: inout Crypto
  ) throws(CryptographyFailure) -> Secret<32> {
    var info = ByteBuffer<32>()
    switch purpose {
    case .activation: try? info.append("holdfast/1 activation code")
    case .unlock: try? info.append("holdfast/1 unlock code")
    }
    var key = Secret<32>()
    try key.withMutableBytes { (output: inout MutableSpan<UInt8>) throws(CryptographyFailure) in
      try characters.withBytes { (characters) throws(CryptographyFailure) in
        try cryptography.hkdfSHA256(inputKey: characters, salt: Span(), info: info.bytes, into: &output)
      }
    }
    return key
  }

  /// The purpose of a code, which is good for one use.
  public enum Purpose: UInt8, Sendable {
    /// The code gives a user new secrets.
    case activation = 1
    /// The code ends a user's lockout.
    case unlock = 2
  }

  /// The number that the characters represent, modulo 37.
  private var checkValue: UInt8 {
    characters.withBytes { bytes in
      var remainder: UInt32 = 0
      for index in bytes.indices { remainder = (remainder * 32 + UInt32(CrockfordBase32.value(bytes[index]))) % 37 }
      return UInt8(remainder)
    }
  }
}

/// A device's record of a ``OneUseCode``. It holds the key of the MACs instead of the code.
public struct OneUseCodeRecord: ~Copyable, Sendable {
  /// The number of the code in the store.
  public let id: UInt64
  /// The purpose of the code.
  public let purpose: OneUseCode.Purpose
  /// The key of the MACs, 32 bytes: see `OneUseCode.key(for:using:)`.
  public let key: Secret<32>
  /// The name of the user for whom the code is, at most 32 bytes.
  public let user: BoundedText<32>
  /// The time at which the code expires, in Unix seconds.
  public let expires: UInt64
  /// The methods of the user's codes; none for a code that unlocks.
  public let methods: ByPurpose<CodeMethod>

  /// Creates a record from its parts.
  public init(
    id: UInt64, purpose: OneUseCode.Purpose, key: consuming Secret<32>, user: BoundedText<32>, expires: UInt64,
    methods: ByPurpose<CodeMethod> = ByPurpose()
  ) {
    self.id = id
    self.purpose = purpose
    self.key = key
    self.user = user
    self.expires = expires
    self.methods = methods
  }
}

/// Crockford's base32, for text that people read aloud and type. The encoded data is secret, so there are no table
/// look-ups or branches on it.
///
/// Source: <https://www.crockford.com/base32.html>, without its check symbol.
package enum CrockfordBase32 {
  /// Returns the ASCII character of five bits: the digits, then the letters without I, L, O and U.
  package static func character(_ value: UInt8) -> UInt8 {
    let value = Int32(value)
    let code =
      0x30 + value + 7 * atLeast(10, value) + atLeast(18, value) + atLeast(20, value) + atLeast(22, value)
      + atLeast(27, value)
    return UInt8(truncatingIfNeeded: code)
  }

  /// Returns the five bits of an ASCII character, or 0x80 for a character that has none. Lower case counts as upper
  /// case, O as 0, I and L as 1.
  package static func value(_ character: UInt8) -> UInt8 {
    let isSmall = atLeast(0x61, Int32(character)) & (1 - atLeast(0x7b, Int32(character)))
    let character = character - UInt8(truncatingIfNeeded: isSmall << 5)
    var value: UInt8 = 0x80
    for candidate in UInt8(0)..<32 {
      value ^= equal(character, Self.character(candidate)) & (0x80 ^ candidate)
    }
    value ^= equal(character, UInt8(ascii: "O")) & (0x80 ^ 0)
    value ^= (equal(character, UInt8(ascii: "I")) | equal(character, UInt8(ascii: "L"))) & (0x80 ^ 1)
    return value
  }

  /// Returns 1 if `value` is at least `least`, otherwise 0.
  private static func atLeast(_ least: Int32, _ value: Int32) -> Int32 {
    1 &+ ((value &- least) >> 31)
  }

  /// Returns all ones if both are the same, otherwise 0.
  private static func equal(_ left: UInt8, _ right: UInt8) -> UInt8 {
    UInt8(truncatingIfNeeded: (Int32(left ^ right) &- 1) >> 31)
  }
}
