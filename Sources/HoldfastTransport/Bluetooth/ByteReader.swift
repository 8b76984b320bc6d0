/// Takes apart bytes that somebody else wrote: what is not there is nil, never a crash.
struct ByteReader {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  /// The next `count` bytes.
  mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
    guard 0...rest.count ~= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  /// The next integer, its least significant byte first: as the management interface writes them.
  mutating func littleEndian<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
    bigEndian(Number.self)?.byteSwapped
  }

  /// The next integer, its most significant byte first: as SDP writes them.
  mutating func bigEndian<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number? {
    bytes(Number.bitWidth / 8)?.reduce(0) { number, byte in number << 8 | Number(truncatingIfNeeded: byte) }
  }
}

extension [UInt8] {
  mutating func append(littleEndian number: some FixedWidthInteger) {
    for shift in stride(from: 0, to: number.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: number >> shift)) }
  }

  mutating func append(bigEndian number: some FixedWidthInteger) {
    append(littleEndian: number.byteSwapped)
  }
}
