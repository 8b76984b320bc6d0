extension CBORReader {
  /// How deep a value may be nested that is read over.
  private static var depthLimit: Int { 8 }

  /// Reads over the next value, whatever it is, so that a later version of a message can have members that this one does not
  /// know.
  ///
  /// Throws `malformed` for a value that is not deterministic CBOR (RFC 8949 §4.2.1), has an integer beyond 2^53 - 1, a tag, a
  /// float or a simple value other than null and Booleans anywhere, has a map whose keys are no integers or strings, or is
  /// nested more than 8 deep.
  public mutating func skipValue() throws(EncodingFault) {
    try skipValue(depthLimit: Self.depthLimit)
  }

  private mutating func skipValue(depthLimit: Int) throws(EncodingFault) {
    guard depthLimit > 0 else { throw .malformed }
    switch try nextMajorType() {
    case .unsigned, .negative: _ = try integer()
    case .bytes: _ = try byteString()
    case .text: _ = try textString()
    case .array:
      for _ in 0..<(try arrayHead()) { try skipValue(depthLimit: depthLimit - 1) }
    case .map: try skipPairs(depthLimit: depthLimit - 1)
    case .tag: throw .malformed
    case .simple: try simpleValue()
    }
  }

  /// Reads over a map, whose keys must rise in the order of their encoded bytes.
  private mutating func skipPairs(depthLimit: Int) throws(EncodingFault) {
    var previous: Range<Int>?
    for _ in 0..<(try mapHead()) {
      let start = position
      switch try nextMajorType() {
      case .unsigned, .negative, .bytes, .text: try skipValue(depthLimit: 1)
      case .array, .map, .tag, .simple: throw .malformed
      }
      let key = start..<position
      if let previous, !isEncoding(previous, before: key) { throw .malformed }
      previous = key
      try skipValue(depthLimit: depthLimit)
    }
  }

  private func isEncoding(_ left: Range<Int>, before right: Range<Int>) -> Bool {
    for offset in 0..<min(left.count, right.count) {
      let (leftByte, rightByte) = (byte(at: left.lowerBound + offset), byte(at: right.lowerBound + offset))
      if leftByte != rightByte { return leftByte < rightByte }
    }
    return left.count < right.count
  }
}
