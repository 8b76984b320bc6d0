import HoldfastCore

/// Where the lines of a file of URIs are; empty ones are left out, as are spaces at both ends.
///
/// `tooLarge` when there are more than `maximumCount`.
func uriLines(_ bytes: Span<UInt8>, maximumCount: Int) throws(ImportFault) -> [Range<Int>] {
  var lines: [Range<Int>] = []
  var start = bytes.starts(with: "\u{FEFF}") ? 3 : 0
  while start < bytes.count {
    var end = start
    while end < bytes.count, bytes[end] != 0x0a { end += 1 }
    let next = end + 1
    while start < end, isWhitespace(bytes[start]) { start += 1 }
    while start < end, isWhitespace(bytes[end - 1]) { end -= 1 }
    if start < end {
      guard lines.count < maximumCount else { throw .tooLarge }
      lines.append(start..<end)
    }
    start = next
  }
  return lines
}
