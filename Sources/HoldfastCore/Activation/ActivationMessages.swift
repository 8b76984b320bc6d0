/// A message from a user without a token, for an activation or an unlocking. The user sends it instead of M2.
///
/// Source: `docs/protocol.md`, "Activation" and "Unlocking".
package enum ActivationMessage {
  /// The request for a user's secrets: `[21, client point, mac]`.
  case activate(P256Point, mac: MAC)
  /// The user's confirmation that the secrets are durable: `[23, mac]`.
  case confirm(mac: MAC)
  /// The request to end a user's lockout: `[25, mac]`.
  case unlock(mac: MAC)

  /// Decodes `message`; nil for a message of any other type.
  package init?(_ message: Span<UInt8>) throws(EncodingFault) {
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

  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
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

/// The device's answer to a ``ActivationMessage``.
package enum ActivationReply: ~Escapable {
  /// The device's point and the sealed ``ActivationGrant``: `[22, device point, sealed]`. The span points into the
  /// message.
  case grant(P256Point, sealed: Span<UInt8>)
  /// The device's answer that the user can use the secrets: `[24, mac]`.
  case activated(mac: MAC)
  /// The device's answer that the lockout has ended: `[26, mac]`.
  case unlocked(mac: MAC)

  /// Decodes `message`.
  ///
  /// - Throws: `malformed` if it is not deterministic CBOR, `unexpected` for any other message, `tooLong` above 4096
  ///   bytes.
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
  mutating func appendMAC(_ type: UInt64, _ mac: MAC) throws(Failure) {
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

/// The data that a device gives a new user in addition to the secrets:
/// `{1: user, 2: time, 3: [[purpose, method] …], 4: seal parameter length, ? 5: demand}`.
///
/// The demand is not part of this type, which a microcontroller has on its stack: it neither stores nor sends demands.
package struct ActivationGrant: Sendable, Equatable {
  /// The user's name, 1 to 32 bytes.
  package let user: BoundedText<32>
  /// The device's time, in Unix seconds.
  package let time: UInt64
  /// The methods of the user's codes.
  package var methods = ByPurpose<CodeMethod>()
  /// The most characters (Unicode scalars) of a parameter under a seal, 1 to 64.
  package let sealParameterLength: UInt64

  /// Creates a grant from its parts.
  package init(user: BoundedText<32>, time: UInt64, methods: ByPurpose<CodeMethod>, sealParameterLength: UInt64) {
    self.user = user
    self.time = time
    self.methods = methods
    self.sealParameterLength = sealParameterLength
  }

  /// Reads a grant, and the owner's demand if there is one.
  package init(_ plaintext: Span<UInt8>, demand: inout ProtectionDemand?) throws(EncodingFault) {
    var reader = CBORReader(plaintext)
    var order = CBORLabelOrder()
    let count = try reader.mapHead()
    guard count == 4 || count == 5 else { throw .unexpected }
    try self.init(fieldsOf: &reader, &order)
    demand = nil
    if count == 5 {
      try reader.label(5, &order)
      demand = try ProtectionDemand(&reader)
    }
    try reader.finish()
  }

  private init(fieldsOf reader: inout CBORReader, _ order: inout CBORLabelOrder) throws(EncodingFault) {
    try reader.label(1, &order)
    user = try reader.boundedText()
    try reader.label(2, &order)
    time = try reader.unsigned()
    try reader.label(3, &order)
    let count = try reader.arrayHead()
    var last: UInt64 = 0
    for _ in 0..<count {
      try reader.array(of: 2)
      let number = try reader.unsigned()
      guard number > last, let purpose = CodePurpose(rawValue: UInt8(clamping: number)), purpose != .host else {
        throw .unexpected
      }
      last = number
      methods[purpose] = try CodeMethod(&reader)
    }
    try reader.label(4, &order)
    sealParameterLength = try reader.unsigned()
    guard !user.isEmpty, (1...64).contains(sealParameterLength) else { throw .unexpected }
  }

  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(map: 4)
    try encodeFields(into: &sink)
  }

  /// Writes the grant together with the owner's demand.
  package func encode<Sink: ByteSink & ~Copyable>(
    with demand: ProtectionDemand, into sink: inout Sink
  ) throws(Sink.Failure) {
    try sink.appendCBOR(map: 5)
    try encodeFields(into: &sink)
    try sink.appendCBOR(unsigned: 5)
    try demand.encode(into: &sink)
  }

  private func encodeFields<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(unsigned: 1)
    try sink.appendCBOR(text: user.bytes)
    try sink.appendCBOR(unsigned: 2)
    try sink.appendCBOR(unsigned: time)
    try sink.appendCBOR(unsigned: 3)
    try sink.appendCBOR(array: methods.count)
    for purpose in CodePurpose.given {
      if let method = methods[purpose] { try sink.appendAccount(purpose, method) }
    }
    try sink.appendCBOR(unsigned: 4)
    try sink.appendCBOR(unsigned: sealParameterLength)
  }
}

extension ByteSink where Self: ~Copyable {
  fileprivate mutating func appendAccount(_ purpose: CodePurpose, _ method: CodeMethod) throws(Failure) {
    try appendCBOR(array: 2)
    try appendCBOR(unsigned: UInt64(purpose.rawValue))
    try method.encode(into: &self)
  }
}
