/// M3, device to prover: `[3, status, sealed / null]`. The span points into the message.
public struct VerdictMessage: ~Escapable {
  public let status: Status
  /// The encrypted reply and its 16-byte tag; empty when the device sent null.
  public let sealed: Span<UInt8>
  public let isSealed: Bool

  /// Decodes M3.
  @_lifetime(copy message)
  public init(_ message: Span<UInt8>) throws(EncodingFault) {
    guard message.count <= Message.maximumByteCount else { throw .tooLong }
    var reader = CBORReader(message)
    try reader.array(of: 3)
    guard try reader.unsigned() == Message.verdictType, let raw = UInt8(exactly: try reader.unsigned()),
      let status = Status(rawValue: raw)
    else { throw .unexpected }
    self.status = status
    isSealed = !reader.null()
    sealed = isSealed ? try reader.byteString() : Span()
    try reader.finish()
  }

  /// Writes M3 without a seal.
  public static func encode<Sink: ByteSink & ~Copyable>(
    unsealed status: Status, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(unsigned: Message.verdictType)
    try sink.appendCBOR(unsigned: UInt64(status.rawValue))
    try sink.appendCBORNull()
  }

  /// Writes M3 around `sealed`.
  package static func encode<Sink: ByteSink & ~Copyable>(
    _ status: Status, sealed: Span<UInt8>, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(unsigned: Message.verdictType)
    try sink.appendCBOR(unsigned: UInt64(status.rawValue))
    try sink.appendCBOR(bytes: sealed)
  }
}
