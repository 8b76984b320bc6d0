/// From an HMAC to the digits that a person types.
///
/// Source: RFC 4226 §5.3. Timing: the same for every HMAC: the offset, a secret, selects by masks and is no address, and
/// the digits are taken off by multiplication, not by a division whose time depends on what is divided.
@usableFromInline
enum Truncation {
  /// The code of `length` that an HMAC of at least 20 bytes gives.
  @usableFromInline
  static func code(_ whole: Span<UInt8>, _ length: CodeLength) -> BoundedText<16> {
    text(number(whole), length)
  }

  /// The 31 bits of `code`, at least 20 bytes, that its last four bits point at.
  private static func number(_ code: Span<UInt8>) -> UInt32 {
    let offset = code[code.count - 1]
    // The offset's four bits move the wanted bytes to the front: by 8, 4, 2 and 1.
    var head = bigEndian(code, 0, 8)
    var tail = bigEndian(code, 8, 8)
    let far = mask(offset >> 3)
    head ^= (head ^ tail) & far
    tail ^= (tail ^ bigEndian(code, 16, 4) << 32) & far
    let four = mask(offset >> 2)
    head ^= (head ^ (head << 32 | tail >> 32)) & four
    tail ^= (tail ^ tail << 32) & four
    let two = mask(offset >> 1)
    head ^= (head ^ (head << 16 | tail >> 48)) & two
    tail ^= (tail ^ tail << 16) & two
    let one = mask(offset)
    head ^= (head ^ (head << 8 | tail >> 56)) & one
    return UInt32(truncatingIfNeeded: head >> 32) & 0x7fff_ffff
  }

  /// All ones where the lowest of `bits` is 1, and zero where it is 0. The compiler must not know that there are but two: it
  /// would select by a condition.
  private static func mask(_ bits: UInt8) -> UInt64 { 0 &- UInt64(opaque(bits & 1)) }

  /// The last digits of `number`, as many as `length` says, with zeros in front of fewer.
  private static func text(_ number: UInt32, _ length: CodeLength) -> BoundedText<16> {
    var text = BoundedText<16>()
    var rest = number
    for index in stride(from: length.digits - 1, through: 0, by: -1) {
      // A tenth, exactly, for every 32-bit number.
      let tenth = UInt32(truncatingIfNeeded: (UInt64(rest) &* 0xcccc_cccd) >> 35)
      text.storage[index] = 0x30 | UInt8(truncatingIfNeeded: rest &- tenth &* 10)
      rest = tenth
    }
    text.length = UInt8(length.digits)
    return text
  }

  /// `count` bytes from `start` on as a number, most significant first.
  private static func bigEndian(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64 {
    var number: UInt64 = 0
    for index in start..<start + count { number = number << 8 | UInt64(bytes[index]) }
    return number
  }
}
