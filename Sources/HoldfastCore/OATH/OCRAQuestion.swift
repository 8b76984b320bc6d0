/// The question of an OCRA code, as the 128 bytes that are authenticated.
///
/// Source: RFC 6287 §5.1, §6.3 and appendix A.
public struct OCRAQuestion: Sendable, Equatable {
  /// Text as its bytes, a decimal number as a hexadecimal one, hexadecimal digits as they are: written from the left,
  /// two digits a byte, with zeros behind.
  public let bytes: FixedBytes<128>

  /// The most characters of a question.
  public static let maximumLength = 128

  /// Reads a question as `suite` wants it written; nil for characters that it has not, for none, and for more than twice
  /// ``OCRASuite/questionLength``: a mutual question is made of two (RFC 6287 §7.2).
  public init?(_ text: Span<UInt8>, for suite: OCRASuite) {
    guard (1...2 * suite.questionLength).contains(text.count) else { return nil }
    let bytes: FixedBytes<128>? =
      switch suite.questionFormat {
      case .alphanumeric: Self.alphanumeric(text)
      case .numeric: Self.numeric(text)
      case .hexadecimal: Self.hexadecimal(text)
      }
    guard let bytes else { return nil }
    self.bytes = bytes
  }

  private static func alphanumeric(_ text: Span<UInt8>) -> FixedBytes<128>? {
    var bytes = FixedBytes<128>()
    for index in text.indices {
      guard (0x20...0x7e).contains(text[index]) else { return nil }
      bytes[index] = text[index]
    }
    return bytes
  }

  private static func hexadecimal(_ text: Span<UInt8>) -> FixedBytes<128>? {
    var bytes = FixedBytes<128>()
    for index in text.indices {
      guard let digit = hexadecimalDigit(text[index]) else { return nil }
      bytes[index / 2] |= index % 2 == 0 ? digit << 4 : digit
    }
    return bytes
  }

  /// The number's hexadecimal digits without zeros in front, as the reference's `BigInteger` writes them; zero is one digit.
  private static func numeric(_ text: Span<UInt8>) -> FixedBytes<128>? {
    // 128 decimal digits are 426 bits: 14 words, least significant first.
    var words = InlineArray<14, UInt32>(repeating: 0)
    for index in text.indices {
      guard (0x30...0x39).contains(text[index]) else { return nil }
      var carry = UInt64(text[index] - 0x30)
      for place in words.indices {
        carry += UInt64(words[place]) * 10
        words[place] = UInt32(truncatingIfNeeded: carry)
        carry >>= 32
      }
    }
    var bytes = FixedBytes<128>()
    var written = 0
    for place in stride(from: 14 * 8 - 1, through: 0, by: -1) {
      let digit = UInt8(words[place / 8] >> UInt32(place % 8 * 4) & 0x0f)
      guard written > 0 || digit != 0 else { continue }
      bytes[written / 2] |= written % 2 == 0 ? digit << 4 : digit
      written += 1
    }
    return bytes
  }

  private static func hexadecimalDigit(_ character: UInt8) -> UInt8? {
    switch character {
    case 0x30...0x39: character - 0x30
    case 0x41...0x46: character - 0x41 + 10
    case 0x61...0x66: character - 0x61 + 10
    default: nil
    }
  }
}

#if !hasFeature(Embedded)
  extension OCRAQuestion {
    /// Reads a question as `suite` wants it written; nil for any other.
    public init?(_ text: String, for suite: OCRASuite) {
      self.init(Array(text.utf8).span, for: suite)
    }
  }
#endif
