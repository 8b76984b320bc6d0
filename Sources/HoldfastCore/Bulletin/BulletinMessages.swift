// A microcontroller takes no bulletins.
#if !hasFeature(Embedded)
/// A message about bulletins, from prover to device, that is sent in place of M2: `[7, bulletin / null]`. The span points into the
/// message.
///
/// Source: docs/couriers.md, Delivery in a session.
package struct BulletinMessage: ~Escapable {
  /// The bulletin, at most 3072 bytes; nil if the prover asks for the device's list.
  package let bulletin: Span<UInt8>?

  /// Decodes a message.
  ///
  /// - Returns: nil if the message has another type, also if it is no CBOR.
  /// - Throws: if it has this type, `malformed` if it is not deterministic CBOR, `unexpected` for another structure, `tooLong` for a
  ///   longer bulletin.
  @_lifetime(copy message)
  package init?(_ message: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(message)
    guard let count = try? reader.arrayHead(), (try? reader.unsigned()) == Message.bulletinType else { return nil }
    guard count == 2 else { throw .unexpected }
    if reader.null() {
      bulletin = nil
    } else {
      let bytes = try reader.byteString()
      guard bytes.count <= Bulletin.maximumByteCount else { throw .tooLong }
      bulletin = bytes
    }
    try reader.finish()
  }

  /// Writes a message. Without a bulletin, it asks for the device's list.
  package static func encode<Sink: ByteSink & ~Copyable>(
    _ bulletin: Span<UInt8>?, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 2)
    try sink.appendCBOR(unsigned: Message.bulletinType)
    if let bulletin { try sink.appendCBOR(bytes: bulletin) } else { try sink.appendCBORNull() }
  }
}

/// The device's answer to a ``BulletinMessage``: `[8, result]`, or `[8, 0, list]`. Nothing authenticates it.
package struct BulletinAnswer: Sendable, Equatable {
  /// The result of the delivery; `taken` with a list.
  package let result: BulletinResult
  /// The list that the prover asked for; nil after a delivery.
  package let list: BulletinList?

  /// Creates an answer.
  package init(_ result: BulletinResult, list: BulletinList? = nil) { (self.result, self.list) = (result, list) }

  /// Decodes an answer.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure or result.
  package init(_ message: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(message)
    let count = try reader.arrayHead()
    guard count == 2 || count == 3, try reader.unsigned() == Message.bulletinResultType,
      let result = BulletinResult(rawValue: UInt8(clamping: try reader.unsigned())),
      count == 2 || result == .taken
    else { throw .unexpected }
    self.result = result
    list = count == 3 ? try BulletinList(&reader) : nil
    try reader.finish()
  }

  /// Writes the answer.
  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: list == nil ? 2 : 3)
    try sink.appendCBOR(unsigned: Message.bulletinResultType)
    try sink.appendCBOR(unsigned: UInt64(result.rawValue))
    try list?.encode(into: &sink)
  }
}
#endif
