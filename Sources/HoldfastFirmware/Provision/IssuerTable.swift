import HoldfastCore

/// The issuers that a device trusts, at most eight.
public struct IssuerTable: Sendable {
  public static let maximumCount = 8

  private var points = InlineArray<8, P256Point>(repeating: P256Point())
  private var keyIDs = InlineArray<8, KeyID>(repeating: KeyID())
  public private(set) var count = 0

  /// Nobody.
  public init() {}

  /// Trusts one more; false where there are as many as there may be, or one of that id is there already.
  public mutating func append(_ keyID: KeyID, _ point: P256Point) -> Bool {
    guard count < Self.maximumCount, self[keyID] == nil else { return false }
    (keyIDs[count], points[count]) = (keyID, point)
    count += 1
    return true
  }

  /// The key whose id is `keyID`; nil for one that is not trusted.
  public subscript(keyID: KeyID) -> P256Point? {
    for index in 0..<count where keyIDs[index] == keyID { return points[index] }
    return nil
  }

  /// The id of an issuer, below ``count``.
  public func keyID(_ index: Int) -> KeyID {
    precondition(index < count)
    return keyIDs[index]
  }
}

extension IssuerTable {
  /// Writes `[[kid, point] …]`.
  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: count)
    for index in 0..<count {
      try sink.appendCBOR(array: 2)
      let (keyID, point) = (keyIDs[index], points[index])
      try sink.appendCBOR(bytes: keyID.bytes)
      try sink.appendCBOR(bytes: point.bytes)
    }
  }

  init(_ reader: inout CBORReader) throws(EncodingFault) {
    for _ in 0..<(try reader.arrayHead()) {
      try reader.array(of: 2)
      guard append(try reader.fixedBytes(), try reader.fixedBytes()) else { throw .unexpected }
    }
  }
}
