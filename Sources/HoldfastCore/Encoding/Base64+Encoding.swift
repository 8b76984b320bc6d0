/// Writing base64, without table look-ups or branches on the bytes: what is encoded may be a secret.
///
/// Source: RFC 4648 §4 and §5.
extension ByteSink where Self: ~Copyable {
  /// Writes `bytes` as base64url without padding. Source: RFC 7515 §2.
  public mutating func append(asBase64URL bytes: Span<UInt8>) throws(Failure) {
    try append(bytes, in: .url)
  }

  /// Writes `bytes` as padded standard base64.
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
  /// The character of six bits.
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

  /// All ones when `value` is at least `least`, otherwise zero.
  private static func mask(from least: Int16, _ value: Int16) -> Int16 {
    ~((value &- least) >> 15)
  }
}
