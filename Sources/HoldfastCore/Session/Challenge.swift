/// M1, device to prover: `[1, 1, device_id, challenge, kid, required, clock / null]`.
public struct Challenge: Sendable {
  public let deviceID: DeviceID
  /// 16 bytes that this device sends once.
  public let nonce: FixedBytes<16>
  /// Names the device's key.
  public let keyID: KeyID
  /// What every command needs: a hint.
  public let required: Factors
  /// The device's time in Unix seconds; nil where it has none.
  public let clock: UInt64?

  public init(deviceID: DeviceID, nonce: FixedBytes<16>, keyID: KeyID, required: Factors, clock: UInt64?) {
    self.deviceID = deviceID
    self.nonce = nonce
    self.keyID = keyID
    self.required = required
    self.clock = clock
  }

  /// Decodes M1.
  public init(_ message: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(message)
    try reader.array(of: 7)
    guard try reader.unsigned() == Message.challengeType, try reader.unsigned() == Message.version else {
      throw .unexpected
    }
    deviceID = try reader.fixedBytes()
    nonce = try reader.fixedBytes()
    keyID = try reader.fixedBytes()
    guard let bits = UInt8(exactly: try reader.unsigned()), Factors.all.isSuperset(of: Factors(rawValue: bits)) else {
      throw .unexpected
    }
    required = Factors(rawValue: bits)
    clock = reader.null() ? nil : try reader.unsigned()
    try reader.finish()
  }

  /// Writes M1.
  public func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 7)
    try sink.appendCBOR(unsigned: Message.challengeType)
    try sink.appendCBOR(unsigned: Message.version)
    try sink.appendCBOR(bytes: deviceID.bytes)
    try sink.appendCBOR(bytes: nonce.bytes)
    try sink.appendCBOR(bytes: keyID.bytes)
    try sink.appendCBOR(unsigned: UInt64(required.rawValue))
    if let clock { try sink.appendCBOR(unsigned: clock) } else { try sink.appendCBORNull() }
  }
}
