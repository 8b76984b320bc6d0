/// The bytes of hexadecimal digits; stops the test on anything else.
func hex(_ text: String) -> [UInt8] {
  let digits = text.utf8.map { UInt8($0) }
  precondition(digits.count % 2 == 0)
  return stride(from: 0, to: digits.count, by: 2).map { index in
    UInt8(text.dropFirst(index).prefix(2), radix: 16)!
  }
}

/// Lower-case hexadecimal digits.
func hex(_ bytes: [UInt8]) -> String {
  bytes.map { byte in
    let digits = String(byte, radix: 16)
    return digits.count == 1 ? "0" + digits : digits
  }.joined()
}

extension Span where Element == UInt8 {
  var array: [UInt8] { indices.map { self[$0] } }
}
