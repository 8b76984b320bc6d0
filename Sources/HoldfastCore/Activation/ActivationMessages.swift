/// A message of a user without a token: an activation's or an unlocking's. They stand in the place of M2.
///
/// Source: `docs/protocol.md`, "Activation" and "Unlocking".
public enum UserMessage {
  /// `[21, client point, mac]`.
  case activate(P256Point, mac: FixedBytes<32>)
  /// `[23, mac]`.
  case confirm(mac: FixedBytes<32>)
  /// `[25, mac]`.
  case unlock(mac: FixedBytes<32>)

  /// Decodes one; nil for any other message.
  init?(_ message: Span<UInt8>) throws(EncodingFault) {
    guard message.count <= Message.maximumByteCount else { throw .tooLong }
    var reader = CBORReader(message)
    let count = try reader.arrayHead()
    switch (try reader.unsigned(), count) {
    case (Message.activateType, 3): self = .activate(try reader.fixedBytes(), mac: try reader.fixedBytes())
    case (Message.confirmType, 2): self = .confirm(mac: try reader.fixedBytes())
    case (Message.unlockType, 2): self = .unlock(mac: try reader.fixedBytes())
    default: return nil
    }
    try reader.finish()
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    switch self {
    case .activate(let point, let mac):
      try sink.appendCBOR(array: 3)
      try sink.appendCBOR(unsigned: Message.activateType)
      try sink.appendCBOR(bytes: point.bytes)
      try sink.appendCBOR(bytes: mac.bytes)
    case .confirm(let mac): try sink.appendMAC(Message.confirmType, mac)
    case .unlock(let mac): try sink.appendMAC(Message.unlockType, mac)
    }
  }
}

/// The device's answer to a ``UserMessage``.
public enum UserReply: ~Escapable {
  /// `[22, device point, sealed]`; the span points into the message.
  case grant(P256Point, sealed: Span<UInt8>)
  /// `[24, mac]`.
  case activated(mac: FixedBytes<32>)
  /// `[26, mac]`.
  case unlocked(mac: FixedBytes<32>)

  /// Decodes one. Throws for any other message.
  @_lifetime(copy message)
  package init(_ message: Span<UInt8>) throws(EncodingFault) {
    guard message.count <= Message.maximumByteCount else { throw .tooLong }
    var reader = CBORReader(message)
    let count = try reader.arrayHead()
    switch (try reader.unsigned(), count) {
    case (Message.grantType, 3): self = .grant(try reader.fixedBytes(), sealed: try reader.byteString())
    case (Message.activatedType, 2): self = .activated(mac: try reader.fixedBytes())
    case (Message.unlockedType, 2): self = .unlocked(mac: try reader.fixedBytes())
    default: throw .unexpected
    }
    try reader.finish()
  }
}

extension ByteSink where Self: ~Copyable {
  /// Writes `[type, mac]`.
  mutating func appendMAC(_ type: UInt64, _ mac: FixedBytes<32>) throws(Failure) {
    try appendCBOR(array: 2)
    try appendCBOR(unsigned: type)
    try appendCBOR(bytes: mac.bytes)
  }
}

extension Message {
  static let activateType: UInt64 = 21
  static let grantType: UInt64 = 22
  static let confirmType: UInt64 = 23
  static let activatedType: UInt64 = 24
  static let unlockType: UInt64 = 25
  static let unlockedType: UInt64 = 26
}
