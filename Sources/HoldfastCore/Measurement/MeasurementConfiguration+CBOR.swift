extension MeasurementConfiguration {
  /// Reads a configuration: the deterministic CBOR map
  /// `{1: 1, 2: salt, 3: mpk id, 4: [app ids], 5: [device ids], 6: created}`.
  ///
  /// - Parameter bytes: the whole file.
  /// - Throws: `malformed` when it is not deterministic CBOR, `unexpected` when it is but not this map, `tooLong` for
  ///   more ids than there may be.
  public init(decoding bytes: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(bytes)
    guard try reader.mapHead() == 6 else { throw .unexpected }
    var order = CBORLabelOrder()
    try reader.label(1, &order)
    guard try reader.unsigned() == 1 else { throw .unexpected }
    try reader.label(2, &order)
    let salt: FixedBytes<32> = try reader.fixedBytes()
    try reader.label(3, &order)
    let mpkID: KeyID = try reader.fixedBytes()
    try reader.label(4, &order)
    let appIDs = try Self.readIDs(&reader)
    try reader.label(5, &order)
    let deviceIDs = try Self.readIDs(&reader)
    try reader.label(6, &order)
    let created = try reader.unsigned()
    try reader.finish()
    try self.init(salt: salt, mpkID: mpkID, appIDs: appIDs, deviceIDs: deviceIDs, created: created)
  }

  /// The configuration as deterministic CBOR; reading it gives the same configuration, and no other bytes do.
  public func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    encode(into: &bytes)
    return bytes
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) where Sink.Failure == Never {
    sink.appendCBOR(map: 6)
    sink.appendCBOR(unsigned: 1)
    sink.appendCBOR(unsigned: 1)
    sink.appendCBOR(unsigned: 2)
    sink.appendCBOR(bytes: salt.bytes)
    sink.appendCBOR(unsigned: 3)
    sink.appendCBOR(bytes: mpkID.bytes)
    sink.appendCBOR(unsigned: 4)
    Self.encode(ids: appIDs, into: &sink)
    sink.appendCBOR(unsigned: 5)
    Self.encode(ids: deviceIDs, into: &sink)
    sink.appendCBOR(unsigned: 6)
    sink.appendCBOR(unsigned: created)
  }

  private static func encode<Sink: ByteSink & ~Copyable>(ids: [ComponentID], into sink: inout Sink)
  where Sink.Failure == Never {
    sink.appendCBOR(array: ids.count)
    for id in ids { sink.appendCBOR(text: id.bytes) }
  }

  private static func readIDs(_ reader: inout CBORReader) throws(EncodingFault) -> [ComponentID] {
    let count = try reader.arrayHead()
    guard count <= maximumComponentCount else { throw .tooLong }
    var ids: [ComponentID] = []
    for _ in 0..<count { ids.append(try ComponentID(componentID: reader.textString())) }
    return ids
  }
}
