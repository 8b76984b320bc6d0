/// A growing array as the place where encoded bytes go.
///
/// For the ends that have a heap: the verify path writes into ``ByteBuffer`` and hashes.
extension Array: ByteSink where Element == UInt8 {
  /// Takes `bytes` at the end.
  public mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  /// Copies `bytes`.
  public init(_ bytes: Span<UInt8>) {
    self = []
    append(bytes)
  }
}
