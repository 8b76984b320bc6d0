import HoldfastCore
import HoldfastOpenSSL

/// The reasons why text is not base32.
package enum Base32Fault: Error, Equatable {
  /// A character is neither in the alphabet, nor padding, nor a separator between two characters.
  case character
  /// No number of bytes encodes to this number of characters.
  case length
  /// The padding does not fill the last group of eight characters exactly.
  case padding
  /// The bits after the last byte are not zero.
  case strayBits
}

/// The encoding of secrets in the letters `A` to `Z` and the digits `2` to `7`, as people write them down.
///
/// Source: RFC 4648 §6. Timing: depends on the number of characters and on the positions of spaces, dashes and padding.
/// It does not depend on the other characters: no branch and no table lookup uses them.
package enum Base32 {
  /// Decodes `text` in either case. One space or dash may separate two characters, and the padding may be left out.
  ///
  /// Empty text decodes to no bytes.
  ///
  /// - Throws: `character`, `length`, `padding` or `strayBits` for any other text.
  package static func decode(_ text: Span<UInt8>) throws(Base32Fault) -> SecretBytes {
    let end = try endOfCharacters(text)
    var characterCount = 0
    for index in 0..<end where !isSeparator(text[index]) { characterCount += 1 }
    try check(paddingCount: text.count - end, after: characterCount)
    var secret = SecretBytes(zeros: characterCount * 5 / 8)
    var bytes = secret.mutableBytes
    var (bits, bitCount, written): (UInt32, Int, Int) = (0, 0, 0)
    for index in 0..<end where !isSeparator(text[index]) {
      bits = bits << 5 | UInt32(value(text[index]).value)
      bitCount += 5
      guard bitCount >= 8 else { continue }
      bitCount -= 8
      bytes[written] = UInt8(truncatingIfNeeded: bits >> UInt32(bitCount))
      written += 1
    }
    let stray = UInt8(truncatingIfNeeded: bits & (1 << UInt32(bitCount) - 1))
    guard revealed(stray) == 0 else { throw .strayBits }
    return secret
  }

  /// Encodes `bytes` in upper case, without the padding, which URIs and people leave out.
  package static func encode(_ bytes: Span<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 8 + 4) / 5)
    var (bits, bitCount): (UInt32, Int) = (0, 0)
    for index in bytes.indices {
      bits = bits << 8 | UInt32(bytes[index])
      bitCount += 8
      while bitCount >= 5 {
        bitCount -= 5
        text.append(character(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)) & 0x1f))
      }
    }
    if bitCount > 0 { text.append(character(UInt8(truncatingIfNeeded: bits << UInt32(5 - bitCount)) & 0x1f)) }
    return text
  }

  /// Returns the index at which the padding begins. Every character before it is in the alphabet or a single separator.
  private static func endOfCharacters(_ text: Span<UInt8>) throws(Base32Fault) -> Int {
    var end = text.count
    while end > 0, revealed(text[end - 1] ^ 0x3d) == 0 { end -= 1 }
    var wasCharacter = false
    var mistake: UInt8 = 0
    for index in 0..<end {
      let isCharacter = !isSeparator(text[index])
      guard isCharacter || wasCharacter else { throw .character }
      if isCharacter { mistake |= value(text[index]).isWrong }
      wasCharacter = isCharacter
    }
    guard wasCharacter || end == 0, revealed(mistake) == 0 else { throw .character }
    return end
  }

  private static func check(paddingCount: Int, after characterCount: Int) throws(Base32Fault) {
    let rest = characterCount % 8
    guard rest != 1, rest != 3, rest != 6 else { throw .length }
    guard paddingCount == 0 || rest != 0 && rest + paddingCount == 8 else { throw .padding }
  }

  private static func isSeparator(_ character: UInt8) -> Bool {
    let (space, dash) = (Int32(character ^ 0x20), Int32(character ^ 0x2d))
    // All ones if one of them is zero: then the difference has the sign bit set.
    return revealed(UInt8(truncatingIfNeeded: ((space - 1) | (dash - 1)) >> 31)) != 0
  }

  /// Returns the five bits that a character encodes. `isWrong` is not zero if the character is outside the alphabet.
  private static func value(_ character: UInt8) -> (value: UInt8, isWrong: UInt8) {
    let plain = Int32(opaque(character))
    let upper = plain & 0xdf
    // All ones if the character lies between the two bounds: then both differences have the sign bit set.
    let isLetter = ((0x40 - upper) & (upper - 0x5b)) >> 31
    let isDigit = ((0x31 - plain) & (plain - 0x38)) >> 31
    let value = isLetter & (upper - 0x41) | isDigit & (plain - 0x32 + 26)
    return (UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: ~(isLetter | isDigit)))
  }

  private static func character(_ value: UInt8) -> UInt8 {
    let plain = Int32(opaque(value))
    let isDigit = (25 - plain) >> 31
    return UInt8(truncatingIfNeeded: plain + 0x41 + isDigit & (0x32 - 26 - 0x41))
  }
}

/// The error for text that is not pairs of hexadecimal digits.
package struct Base16Fault: Error, Equatable {}

/// The encoding of secrets in hexadecimal digits.
///
/// Source: RFC 4648 §8. Timing: depends only on the number of characters. No branch and no table lookup uses them.
package enum Base16 {
  /// Decodes `text`, which holds only hexadecimal digits, in either case. Empty text decodes to no bytes.
  ///
  /// - Throws: ``Base16Fault`` for any other text.
  package static func decode(_ text: Span<UInt8>) throws(Base16Fault) -> SecretBytes {
    guard text.count.isMultiple(of: 2) else { throw Base16Fault() }
    var secret = SecretBytes(zeros: text.count / 2)
    var bytes = secret.mutableBytes
    var mistake: UInt8 = 0
    for index in bytes.indices {
      let (high, low) = (digit(text[2 * index]), digit(text[2 * index + 1]))
      mistake |= high.isWrong | low.isWrong
      bytes[index] = high.value << 4 | low.value
    }
    guard revealed(mistake) == 0 else { throw Base16Fault() }
    return secret
  }

  /// Returns the four bits of a digit. `isWrong` is not zero if the character is not a digit.
  private static func digit(_ character: UInt8) -> (value: UInt8, isWrong: UInt8) {
    let plain = Int32(opaque(character))
    let upper = plain & 0xdf
    // All ones if the character lies between the two bounds: then both differences have the sign bit set.
    let isLetter = ((0x40 - upper) & (upper - 0x47)) >> 31
    let isDigit = ((0x2f - plain) & (plain - 0x3a)) >> 31
    let value = isLetter & (upper - 0x41 + 10) | isDigit & (plain - 0x30)
    return (UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: ~(isLetter | isDigit)))
  }
}
