import HoldfastCore
import HoldfastOpenSSL

/// Text is not pairs of hexadecimal digits.
public struct Base16Fault: Error, Equatable {}

/// Secrets in hexadecimal digits.
///
/// Source: RFC 4648 §8. Timing: depends on how many characters there are alone: they are neither branched on nor looked up.
public enum Base16 {
  /// The bytes of `text`, digits of either case and nothing else; throws for any other. No text is no bytes.
  public static func decode(_ text: Span<UInt8>) throws(Base16Fault) -> SecretBytes {
    guard text.count.isMultiple(of: 2) else { throw Base16Fault() }
    var secret = SecretBytes(zeros: text.count / 2)
    var bytes = secret.mutableBytes
    var mistake: UInt8 = 0
    for index in bytes.indices {
      let (high, low) = (digit(text[2 * index]), digit(text[2 * index + 1]))
      mistake |= high.isWrong | low.isWrong
      bytes[index] = high.value << 4 | low.value
    }
    guard opaque(mistake) == 0 else { throw Base16Fault() }
    return secret
  }

  /// The four bits of a digit; `isWrong` is not zero where it is none.
  private static func digit(_ character: UInt8) -> (value: UInt8, isWrong: UInt8) {
    let plain = Int32(opaque(character))
    let upper = plain & 0xdf
    // All ones where the character is between two others, which the sign bits of both differences say.
    let isLetter = ((0x40 - upper) & (upper - 0x47)) >> 31
    let isDigit = ((0x2f - plain) & (plain - 0x3a)) >> 31
    let value = isLetter & (upper - 0x41 + 10) | isDigit & (plain - 0x30)
    return (UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: ~(isLetter | isDigit)))
  }
}
