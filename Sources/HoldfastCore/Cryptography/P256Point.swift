/// A P-256 point, SEC1 uncompressed: 0x04 ‖ x ‖ y, big-endian. Source: SEC 1 §2.3.3.
public typealias P256Point = FixedBytes<65>

extension FixedBytes where count == 65 {
  /// The uncompressed point with these coordinates, big-endian.
  public init(x: FixedBytes<32>, y: FixedBytes<32>) {
    storage = InlineArray { index in
      if index == 0 { return 0x04 }
      return index <= 32 ? x[index - 1] : y[index - 33]
    }
  }

  /// The first coordinate, big-endian.
  public var x: FixedBytes<32> { coordinate(from: 1) }
  /// The second coordinate, big-endian.
  public var y: FixedBytes<32> { coordinate(from: 33) }

  private func coordinate(from offset: Int) -> FixedBytes<32> {
    var part = FixedBytes<32>()
    for index in 0..<32 { part[index] = self[offset + index] }
    return part
  }
}
