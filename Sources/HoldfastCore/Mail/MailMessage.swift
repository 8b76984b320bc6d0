/// A message about mail, from prover to device, that is sent in place of M2. The span points into the message.
///
/// `[7, bulletin / null]` delivers a bulletin or asks for the list, `[9, from]` asks for a page of the audit log, `[11, receipt]`
/// delivers a receipt. Source: docs/couriers.md, Delivery in a session.
package struct MailMessage: ~Escapable {
  /// The purpose of a message.
  package enum Kind: Sendable, Equatable {
    /// Delivers a bulletin, at most 3072 bytes.
    case bulletin
    /// Asks for the list of the bulletins that the device has.
    case list
    /// Asks for a page that begins with this entry; 0 to let the device choose.
    case page(from: UInt64)
    /// Delivers a receipt, at most 256 bytes.
    case receipt
  }

  /// The purpose of the message.
  package let kind: Kind
  /// The bulletin or the receipt; empty otherwise.
  package let bytes: Span<UInt8>

  /// Decodes a message.
  ///
  /// - Returns: nil if the message has another type, also if it is no CBOR.
  /// - Throws: if it has one of these types, `malformed` if it is not deterministic CBOR, `unexpected` for another structure, `tooLong`
  ///   for a longer bulletin or receipt.
  @_lifetime(copy message)
  package init?(_ message: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(message)
    guard let count = try? reader.arrayHead(), let type = try? reader.unsigned(),
      Self.isType(type)
    else { return nil }
    guard count == 2 else { throw .unexpected }
    var bytes = Span<UInt8>()
    switch type {
    case Message.pageRequestType:
      kind = .page(from: try reader.unsigned())
    case Message.receiptType:
      kind = .receipt
      bytes = try reader.byteString()
      guard bytes.count <= AuditReceipt.maximumByteCount else { throw .tooLong }
    default:
      if reader.null() {
        kind = .list
      } else {
        kind = .bulletin
        bytes = try reader.byteString()
        guard bytes.count <= Bulletin.maximumByteCount else { throw .tooLong }
      }
    }
    self.bytes = bytes
    try reader.finish()
  }

  /// Returns whether messages of this type are about mail.
  private static func isType(_ type: UInt64) -> Bool {
    type == Message.bulletinType || type == Message.pageRequestType || type == Message.receiptType
  }

  #if !hasFeature(Embedded)
  /// Writes a message. `bytes` are those of the bulletin or the receipt.
  package static func encode<Sink: ByteSink & ~Copyable>(
    _ kind: Kind, _ bytes: Span<UInt8> = Span(), into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 2)
    switch kind {
    case .bulletin:
      try sink.appendCBOR(unsigned: Message.bulletinType)
      try sink.appendCBOR(bytes: bytes)
    case .list:
      try sink.appendCBOR(unsigned: Message.bulletinType)
      try sink.appendCBORNull()
    case .page(let from):
      try sink.appendCBOR(unsigned: Message.pageRequestType)
      try sink.appendCBOR(unsigned: from)
    case .receipt:
      try sink.appendCBOR(unsigned: Message.receiptType)
      try sink.appendCBOR(bytes: bytes)
    }
  }
  #endif
}

#if !hasFeature(Embedded)
/// The device's answer to a request for a page of its audit log: `[10, sealed / null]`.
///
/// Source: docs/couriers.md, The audit log goes home.
package struct PageAnswer: Sendable, Equatable {
  /// The sealed page, at most ``AuditPage/maximumSealedByteCount`` bytes; nil if the device gives none.
  package let sealed: [UInt8]?

  /// Creates an answer.
  package init(_ sealed: [UInt8]?) { self.sealed = sealed }

  /// Decodes an answer.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for another structure or length.
  package init(_ message: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(message)
    guard try reader.arrayHead() == 2, try reader.unsigned() == Message.pageType else { throw .unexpected }
    if reader.null() {
      sealed = nil
    } else {
      let bytes = try reader.byteString()
      guard AuditPage.isSealedByteCount(bytes.count) else { throw .unexpected }
      sealed = bytes.indices.map { bytes[$0] }
    }
    try reader.finish()
  }

  /// Writes the answer.
  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 2)
    try sink.appendCBOR(unsigned: Message.pageType)
    if let sealed { try sink.appendCBOR(bytes: sealed.span) } else { try sink.appendCBORNull() }
  }
}
#endif
