import HoldfastCore

/// The members of a protected and an unprotected header, in which a label may occur only once. Source: RFC 9052 §3.1; RFC 9053 §5.1 and
/// §6.3.1.
struct COSEHeaders {
  private(set) var algorithm: Int64?
  private(set) var nonce: [UInt8] = []
  /// The id of the key; nil if there is none, or one that is no byte string, as in some examples.
  private(set) var keyID: [UInt8]?
  private(set) var salt: [UInt8] = []
  /// The ephemeral key of an agreement: the number of its curve, and its coordinates.
  private(set) var ephemeralKey: (curve: Int64, x: [UInt8], y: [UInt8])?
  /// Identity, nonce and other information of both parties, by label, -21 to -26.
  private(set) var parties: [Int64: [UInt8]] = [:]

  /// Reads both headers. Returns the protected one as it is authenticated, too: an empty map is no bytes at all. Source: RFC 9052 §4.4.
  static func read(_ reader: inout CBORReader) throws(EncodingFault) -> (protected: [UInt8], headers: COSEHeaders) {
    var headers = COSEHeaders()
    let protected = [UInt8](try reader.byteString())
    if !protected.isEmpty {
      var inner = CBORReader(protected.span)
      try headers.readMap(&inner)
      try inner.finish()
    }
    try headers.readMap(&reader)
    return (protected == [0xa0] ? [] : protected, headers)
  }

  private mutating func readMap(_ reader: inout CBORReader) throws(EncodingFault) {
    for _ in 0..<(try reader.mapHead()) {
      guard try reader.nextMajorType() != .text else {
        _ = try reader.textString()
        try reader.skipValue()
        continue
      }
      let label = try reader.integer()
      switch label {
      case 1:
        guard algorithm == nil else { throw .unexpected }
        algorithm = try reader.integer()
      case 2: throw .unexpected
      case 4:
        guard keyID == nil else { throw .unexpected }
        guard try reader.nextMajorType() == .bytes else {
          try reader.skipValue()
          continue
        }
        keyID = [UInt8](try reader.byteString())
      case 5:
        guard nonce.isEmpty else { throw .unexpected }
        nonce = [UInt8](try reader.byteString())
      case -1:
        guard ephemeralKey == nil else { throw .unexpected }
        ephemeralKey = try Self.readKey(&reader)
      case -20:
        guard salt.isEmpty else { throw .unexpected }
        salt = [UInt8](try reader.byteString())
      case -26 ... -21:
        guard parties[label] == nil else { throw .unexpected }
        parties[label] = [UInt8](try reader.byteString())
      default: try reader.skipValue()
      }
    }
  }

  /// Reads a public key. If its point is compressed, y is empty. Source: RFC 9053 §7.1.1.
  private static func readKey(_ reader: inout CBORReader) throws(EncodingFault) -> (Int64, [UInt8], [UInt8]) {
    var curve: Int64?
    var (x, y): ([UInt8], [UInt8]) = ([], [])
    for _ in 0..<(try reader.mapHead()) {
      switch try reader.integer() {
      case 1: guard try reader.integer() == 2 else { throw .unexpected }
      case -1: curve = try reader.integer()
      case -2: x = [UInt8](try reader.byteString())
      case -3:
        if try reader.nextMajorType() == .bytes { y = [UInt8](try reader.byteString()) } else { try reader.skipValue() }
      default: try reader.skipValue()
      }
    }
    guard let curve else { throw .unexpected }
    return (curve, x, y)
  }
}
