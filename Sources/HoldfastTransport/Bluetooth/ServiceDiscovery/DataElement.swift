/// One value of the Service Discovery Protocol, its contents not yet taken apart.
///
/// Source: Bluetooth Core 5.4, volume 3 part B, section 3: a type of five bits and a size of three, then perhaps a length,
/// then the value; everything big-endian. An element is passed over by its length, so however deep a peer nests them,
/// nothing here calls itself.
struct DataElement {
  /// The raw value is the type descriptor.
  enum Kind: UInt8 {
    case unsigned = 1
    case uuid = 3
    case text = 4
    case sequence = 6
  }

  /// nil for a type that does not matter here.
  let kind: Kind?
  let value: ArraySlice<UInt8>

  /// The elements of a sequence; nil where this is none, or they are malformed.
  var elements: [DataElement]? {
    guard kind == .sequence else { return nil }
    var reader = ByteReader(value)
    var elements: [DataElement] = []
    while !reader.rest.isEmpty {
      guard let element = reader.dataElement() else { return nil }
      elements.append(element)
    }
    return elements
  }

  /// The value of an unsigned integer of exactly that width.
  func unsigned<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type = Number.self) -> Number? {
    guard kind == .unsigned, value.count == Number.bitWidth / 8 else { return nil }
    var reader = ByteReader(value)
    return reader.bigEndian()
  }

  /// Whether this is the UUID that the Bluetooth base UUID gives to `short`, in any of the three widths.
  func isUUID(_ short: UInt16) -> Bool {
    let base: [UInt8] = [0, 0, 0x10, 0, 0x80, 0, 0, 0x80, 0x5f, 0x9b, 0x34, 0xfb]
    let bytes = [UInt8(short >> 8), UInt8(truncatingIfNeeded: short)]
    return kind == .uuid && [bytes, [0, 0] + bytes, [0, 0] + bytes + base].contains { value.elementsEqual($0) }
  }

  /// Whether this is our service's UUID.
  var isHoldfastUUID: Bool {
    kind == .uuid && value.elementsEqual(HoldfastService.uuid)
  }
}

extension ByteReader {
  /// The next data element; nil where it is malformed or reaches beyond the end.
  mutating func dataElement() -> DataElement? {
    guard let header = littleEndian(UInt8.self), let count = valueByteCount(header: header), let value = bytes(count)
    else { return nil }
    return DataElement(kind: DataElement.Kind(rawValue: header >> 3), value: value)
  }

  private mutating func valueByteCount(header: UInt8) -> Int? {
    switch header & 7 {
    case 0: header >> 3 == 0 ? 0 : 1
    case let size where size <= 4: 1 << Int(size)
    case 5: bigEndian(UInt8.self).map(Int.init)
    case 6: bigEndian(UInt16.self).map(Int.init)
    default: bigEndian(UInt32.self).map(Int.init)
    }
  }
}

extension [UInt8] {
  /// Source: as for ``DataElement``.
  mutating func append(element number: some FixedWidthInteger & UnsignedInteger) {
    append(DataElement.Kind.unsigned.rawValue << 3 | UInt8((number.bitWidth / 8).trailingZeroBitCount))
    append(bigEndian: number)
  }

  /// Appends a UUID of two or sixteen bytes.
  mutating func append(elementUUID uuid: [UInt8]) {
    append(DataElement.Kind.uuid.rawValue << 3 | UInt8(uuid.count.trailingZeroBitCount))
    self += uuid
  }

  /// Appends a sequence, or a text, of at most 255 bytes.
  mutating func append(element kind: DataElement.Kind, _ value: [UInt8]) {
    self += [kind.rawValue << 3 | 5, UInt8(value.count)] + value
  }

  /// Appends a sequence of what `body` appends.
  mutating func append(_ body: (inout [UInt8]) -> Void) {
    var value: [UInt8] = []
    body(&value)
    append(element: .sequence, value)
  }
}
