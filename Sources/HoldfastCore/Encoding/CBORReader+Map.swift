/// Where a map's labels stand: each must come after the one before, in the order of their encoded bytes.
///
/// Source: RFC 8949 §4.2.1.
public struct CBORLabelOrder {
  private var previous: Int64?

  public init() {}

  /// Takes the next label; `malformed` when it repeats or comes too late.
  mutating func advance(to label: Int64) throws(EncodingFault) {
    if let previous, !Self.precedes(previous, label) { throw .malformed }
    previous = label
  }

  private static func precedes(_ left: Int64, _ right: Int64) -> Bool {
    switch (left < 0, right < 0) {
    case (false, true): true
    case (true, false): false
    case (false, false): left < right
    case (true, true): left > right
    }
  }
}

extension CBORReader {
  /// Reads the label of a map's next pair.
  @inline(never)
  public mutating func label(_ order: inout CBORLabelOrder) throws(EncodingFault) -> Int64 {
    let label = try integer()
    try order.advance(to: label)
    return label
  }

  /// Reads the label of a map's next pair, which must be `expected`.
  public mutating func label(_ expected: Int64, _ order: inout CBORLabelOrder) throws(EncodingFault) {
    guard try label(&order) == expected else { throw .unexpected }
  }
}
