import HoldfastCore

/// Functions that read the kernel's text output without converting it to a `String`.
extension ArraySlice<UInt8> {
  /// The slice without blanks and tabs at either end.
  var trimmed: ArraySlice<UInt8> {
    var slice = self
    while let first = slice.first, first.isBlank { slice.removeFirst() }
    while let last = slice.last, last.isBlank { slice.removeLast() }
    return slice
  }

  /// Removes the bytes before `separator`, and the separator, from the front and returns those bytes; all bytes if there is none.
  mutating func take(until separator: UInt8) -> ArraySlice<UInt8> {
    let end = firstIndex(of: separator) ?? endIndex
    let piece = self[startIndex..<end]
    self = self[Swift.min(end + 1, endIndex)...]
    return piece
  }

  /// The value of the hexadecimal digits; nil unless there are 1 to 16.
  var hexadecimal: UInt64? { integer(radix: 16, maximumDigits: 16) }

  /// The value of the decimal digits; nil unless there are 1 to 19.
  var decimal: UInt64? { integer(radix: 10, maximumDigits: 19) }

  private func integer(radix: UInt64, maximumDigits: Int) -> UInt64? {
    guard !isEmpty, count <= maximumDigits else { return nil }
    var value: UInt64 = 0
    for byte in self {
      let digit: UInt8
      switch byte {
      case 0x30...0x39: digit = byte - 0x30
      case 0x61...0x66: digit = byte - 0x61 + 10
      case 0x41...0x46: digit = byte - 0x41 + 10
      default: return nil
      }
      guard digit < radix else { return nil }
      value = value * radix + UInt64(digit)
    }
    return value
  }

  func hasPrefix(_ text: StaticString) -> Bool {
    guard count >= text.utf8CodeUnitCount else { return false }
    return prefix(text.utf8CodeUnitCount).equals(text)
  }

  func equals(_ text: StaticString) -> Bool {
    span.elementsEqual(text)
  }

  /// Returns whether `text` occurs anywhere.
  func contains(_ text: StaticString) -> Bool {
    firstRange(of: text) != nil
  }

  /// Returns the range at which `text` occurs first.
  func firstRange(of text: StaticString) -> Range<Int>? {
    let length = text.utf8CodeUnitCount
    guard count >= length, length > 0 else { return length == 0 ? startIndex..<startIndex : nil }
    let first = unsafe text.utf8Start.pointee
    for start in startIndex...endIndex - length where self[start] == first && self[start...].hasPrefix(text) {
      return start..<start + length
    }
    return nil
  }
}

extension UInt8 {
  var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0a || self == 0x0d }
}

extension [UInt8] {
  /// The lines, without their line ends and without empty ones.
  var lines: [ArraySlice<UInt8>] { split(separator: 0x0a) }
}
