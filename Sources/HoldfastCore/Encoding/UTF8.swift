/// Whether `bytes` are well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
///
/// Source: RFC 3629 §4.
func isValidUTF8(_ bytes: Span<UInt8>) -> Bool {
  var index = 0
  while index < bytes.count {
    guard let length = sequenceLength(bytes, at: index) else { return false }
    index += length
  }
  return true
}

/// The length of the sequence that starts at `index`, 1 to 4; nil when it is not well-formed.
private func sequenceLength(_ bytes: Span<UInt8>, at index: Int) -> Int? {
  let lead = bytes[index]
  if lead < 0x80 { return 1 }
  let length: Int
  var second: ClosedRange<UInt8> = 0x80...0xbf
  switch lead {
  case 0xc2...0xdf: length = 2
  case 0xe0...0xef: length = 3
  case 0xf0...0xf4: length = 4
  default: return nil
  }
  switch lead {
  case 0xe0: second = 0xa0...0xbf
  case 0xed: second = 0x80...0x9f
  case 0xf0: second = 0x90...0xbf
  case 0xf4: second = 0x80...0x8f
  default: break
  }
  guard bytes.count - index >= length, second.contains(bytes[index + 1]) else { return nil }
  for offset in 2..<max(length, 2) where bytes[index + offset] & 0xc0 != 0x80 { return nil }
  return length
}
