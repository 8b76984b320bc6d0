/// An alphabet of base64. It uses no table look-ups and no branches on the characters, since the decoded data may be
/// secret.
///
/// Source: RFC 4648 §4 and §5.
enum Base64Alphabet {
  /// The alphabet with `+` and `/`, padded to whole groups of four characters.
  case standard
  /// The alphabet with `-` and `_`, without padding.
  case url

  /// Returns the six bits of `character`, or at least 0xff00 if it is not in this alphabet.
  fileprivate func sextet(_ character: UInt8) -> UInt16 {
    let code = UInt16(character)
    let (plus, slash): (UInt16, UInt16) = self == .standard ? (0x2b, 0x2f) : (0x2d, 0x5f)
    let upper = Self.within(code, 0x41, 0x5a)
    let lower = Self.within(code, 0x61, 0x7a)
    let digit = Self.within(code, 0x30, 0x39)
    let isPlus = Self.within(code, plus, plus)
    let isSlash = Self.within(code, slash, slash)
    let letters = upper & (code &- 0x41) | lower & (code &- 0x61 &+ 26)
    let value = letters | digit & (code &- 0x30 &+ 52) | isPlus & 62 | isSlash & 63
    let isKnown = upper | lower | digit | isPlus | isSlash
    return value | (~isKnown & 0xff00)
  }

  /// Returns all ones if `low` ≤ `code` ≤ `high`, otherwise zero.
  private static func within(_ code: UInt16, _ low: UInt16, _ high: UInt16) -> UInt16 {
    let outside = (code &- low) | (high &- code)
    return (outside >> 15) &- 1
  }
}

extension ByteBuffer {
  /// Decodes base64url without padding and appends the bytes.
  ///
  /// Source: RFC 7515 §2.
  ///
  /// - Throws: `malformed` for padding, other characters, an impossible length or trailing bits that are not zero, and
  ///   the buffer may then hold a part of the bytes; `tooLong` if the bytes do not fit.
  public mutating func append(base64URL text: Span<UInt8>) throws(EncodingFault) {
    try append(base64: text, alphabet: .url)
  }

  /// Decodes padded standard base64 and appends the bytes.
  ///
  /// Source: RFC 4648 §4.
  ///
  /// - Throws: `malformed` for missing padding, other characters or trailing bits that are not zero, and the buffer may
  ///   then hold a part of the bytes; `tooLong` if the bytes do not fit.
  public mutating func append(paddedBase64 text: Span<UInt8>) throws(EncodingFault) {
    guard text.count % 4 == 0 else { throw .malformed }
    var count = text.count
    for _ in 0..<2 where count > 0 && revealed(text[count - 1] ^ 0x3d) == 0 { count -= 1 }
    try append(base64: text.extracting(0..<count), alphabet: .standard)
  }

  private mutating func append(base64 text: Span<UInt8>, alphabet: Base64Alphabet) throws(EncodingFault) {
    guard text.count % 4 != 1 else { throw .malformed }
    let start = count
    try appendZeros(text.count * 3 / 4)
    var decoded = mutableBytes
    guard alphabet.decode(text, into: &decoded, from: start) else { throw .malformed }
  }
}

extension Base64Alphabet {
  /// Decodes `text` over the bytes of `decoded`, from `start` on. Returns false for other characters, or trailing bits
  /// that are not zero.
  fileprivate func decode(_ text: Span<UInt8>, into decoded: inout MutableSpan<UInt8>, from start: Int) -> Bool {
    var position = start
    var pending: UInt32 = 0
    var pendingBits = 0
    var faults: UInt16 = 0
    for index in text.indices {
      let sextet = sextet(text[index])
      faults |= sextet & 0xff00
      pending = (pending << 6 | UInt32(sextet & 0x3f)) & 0xffff
      pendingBits += 6
      if pendingBits >= 8 {
        pendingBits -= 8
        decoded[position] = UInt8(truncatingIfNeeded: pending >> UInt32(pendingBits))
        position += 1
      }
    }
    let trailing = pending & ((1 << UInt32(pendingBits)) - 1)
    return revealed(UInt8(truncatingIfNeeded: faults >> 8 | UInt16(trailing))) == 0
  }
}

/// Base64 output without table look-ups or branches on the bytes, since the encoded data may be secret.
///
/// Source: RFC 4648 §4 and §5.
extension ByteSink where Self: ~Copyable {
  /// Writes `bytes` as base64url without padding. Source: RFC 7515 §2.
  public mutating func append(asBase64URL bytes: Span<UInt8>) throws(Failure) {
    try append(bytes, in: .url)
  }

  /// Writes `bytes` as padded standard base64. Source: RFC 4648 §4.
  public mutating func append(asPaddedBase64 bytes: Span<UInt8>) throws(Failure) {
    try append(bytes, in: .standard)
    for _ in 0..<(3 - bytes.count % 3) % 3 { try append(0x3d) }
  }

  private mutating func append(_ bytes: Span<UInt8>, in alphabet: Base64Alphabet) throws(Failure) {
    var pending: UInt32 = 0
    var pendingBits = 0
    for index in bytes.indices {
      pending = (pending << 8 | UInt32(bytes[index])) & 0xffff
      pendingBits += 8
      while pendingBits >= 6 {
        pendingBits -= 6
        try append(alphabet.character(UInt8(pending >> UInt32(pendingBits) & 0x3f)))
      }
    }
    if pendingBits > 0 {
      try append(alphabet.character(UInt8(pending << UInt32(6 - pendingBits) & 0x3f)))
    }
  }
}

extension Base64Alphabet {
  /// Returns the character of six bits.
  fileprivate func character(_ sextet: UInt8) -> UInt8 {
    let (plus, slash): (UInt8, UInt8) = self == .standard ? (0x2b, 0x2f) : (0x2d, 0x5f)
    let value = Int16(sextet)
    var code = value + 0x41
    code += Self.mask(from: 26, value) & (0x61 - 26 - 0x41)
    code += Self.mask(from: 52, value) & (0x30 - 52 - (0x61 - 26))
    code += Self.mask(from: 62, value) & (Int16(plus) - 62 - (0x30 - 52))
    code += Self.mask(from: 63, value) & (Int16(slash) - 63 - (Int16(plus) - 62))
    return UInt8(truncatingIfNeeded: code)
  }

  /// Returns all ones if `value` is at least `least`, otherwise zero.
  private static func mask(from least: Int16, _ value: Int16) -> Int16 {
    ~((value &- least) >> 15)
  }
}
