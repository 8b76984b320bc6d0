/// Where encoded bytes go: a buffer, or a hash that never holds them.
public protocol ByteSink: ~Copyable {
  /// Why it may take no more; `Never` for a hash.
  associatedtype Failure: Error

  /// Takes `bytes` at the end.
  mutating func append(_ bytes: Span<UInt8>) throws(Failure)

  /// Takes one byte at the end.
  mutating func append(_ byte: UInt8) throws(Failure)
}

extension ByteSink where Self: ~Copyable {
  public mutating func append(_ byte: UInt8) throws(Failure) {
    let single = InlineArray<1, UInt8>(repeating: byte)
    try append(single.span)
  }

  /// Takes the UTF-8 bytes of `text` at the end.
  public mutating func append(_ text: StaticString) throws(Failure) {
    let bytes = unsafe UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    try unsafe append(bytes.span)
  }

  /// Takes `value`, of at most 64 bits, at the end, most significant byte first.
  public mutating func append<Integer: FixedWidthInteger & UnsignedInteger>(
    bigEndian value: Integer
  ) throws(Failure) {
    let bytes = bigEndianBytes(UInt64(value))
    try append(bytes.span.extracting(last: Integer.bitWidth / 8))
  }

  /// Takes `label` and the zero byte that ends it: what tells one use of a hash or a key from another.
  public mutating func append(domain label: StaticString) throws(Failure) {
    try append(label)
    try append(0)
  }
}

/// The bytes of `value`, most significant first.
func bigEndianBytes(_ value: UInt64) -> InlineArray<8, UInt8> {
  unsafe unsafeBitCast(value.bigEndian, to: InlineArray<8, UInt8>.self)
}
