/// The top three bits of a CBOR head.
///
/// Source: RFC 8949 §3.1.
public enum CBORMajorType: UInt8 {
  case unsigned, negative, bytes, text, array, map, tag, simple

  init(of initialByte: UInt8) {
    self = CBORMajorType(rawValue: initialByte >> 5) ?? .simple
  }

  /// The least value that needs an argument of `width` bytes (1, 2, 4 or 8).
  static func leastValue(width: Int) -> UInt64 {
    switch width {
    case 1: 24
    case 2: 1 << 8
    case 4: 1 << 16
    default: 1 << 32
    }
  }
}
