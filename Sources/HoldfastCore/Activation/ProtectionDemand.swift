/// The protection that a device's owner demands for a user's secrets in the authenticator.
///
/// The device cannot check it: an authenticator that keeps the rules refuses weaker protection before it confirms an
/// activation, and later. Source: `docs/protocol.md`, "Activation".
public struct ProtectionDemand: Sendable, Hashable {
  /// The numbers of digits that an owner may demand of a PIN.
  public static var pinLengths: ClosedRange<Int> { 4...64 }

  /// The least number of digits of the PIN; nil if no PIN is demanded.
  public let pinLength: Int?
  /// Whether a key from another authenticator is demanded.
  public let needsKey: Bool

  /// Creates a demand; nil if it demands nothing, or for a PIN of fewer than 4 or more than 64 digits.
  public init?(pinLength: Int? = nil, needsKey: Bool = false) {
    guard pinLength != nil || needsKey, Self.pinLengths.contains(pinLength ?? 4) else { return nil }
    (self.pinLength, self.needsKey) = (pinLength, needsKey)
  }

  /// Creates a demand from the number under which it is stored; nil for 0 and for any number that none has.
  package init?(stored number: UInt64) {
    guard number < 256 else { return nil }
    let length = Int(number & 127)
    self.init(pinLength: length == 0 ? nil : length, needsKey: number & 128 != 0)
  }

  /// The number under which the demand is stored: the length of the PIN, plus 128 if a key is demanded.
  package var stored: UInt64 { UInt64(pinLength ?? 0) | (needsKey ? 128 : 0) }

  /// Reads `[PIN length, needs key]`: 0 or the least number of digits, and 0 or 1.
  ///
  /// - Throws: `unexpected` for any other demand, which the reader would not know how to meet.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 2)
    let (length, key) = (try reader.unsigned(), try reader.unsigned())
    guard length <= 64, key <= 1,
      let demand = ProtectionDemand(pinLength: length == 0 ? nil : Int(length), needsKey: key == 1)
    else { throw .unexpected }
    self = demand
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 2)
    try sink.appendCBOR(unsigned: UInt64(pinLength ?? 0))
    try sink.appendCBOR(unsigned: needsKey ? 1 : 0)
  }
}
