// A microcontroller has no heap for it, and encodes its answers in another way.
#if !hasFeature(Embedded)
/// The device's answer to a bulletin, a receipt or the question for its list: `[8, result]`, or `[8, 0, list]`. Nothing authenticates it.
///
/// Source: docs/couriers.md, Delivery in a session.
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
