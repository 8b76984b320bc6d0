import HoldfastCore

/// The home of a device's audit log, as its owner provisions it: `[kid, refuses, point]`. `refuses` is 0 or 1. The point has 65 zero bytes
/// if the home has announced no key for agreement, so that the length is always the same.
///
/// Source: docs/couriers.md, The audit log goes home.
package struct ProvisionedHome: Sendable, Equatable {
  /// The id of the key that signs receipts.
  package let keyID: KeyID
  /// Whether commands are refused, rather than entries lost, once the log is full of entries that the home has not acknowledged.
  package let refusesWhenFull: Bool
  /// The home's public key for agreement, an uncompressed point of 65 bytes; nil if it announced none.
  package var agreementKey: P256Point?

  /// Creates a home.
  package init(keyID: KeyID, refusesWhenFull: Bool, agreementKey: P256Point? = nil) {
    (self.keyID, self.refusesWhenFull, self.agreementKey) = (keyID, refusesWhenFull, agreementKey)
  }

  #if !hasFeature(Embedded)
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 3)
    keyID = try reader.fixedBytes()
    refusesWhenFull = try reader.flag()
    let point: P256Point = try reader.fixedBytes()
    guard point.bytes[0] == 4 || point == P256Point() else { throw .unexpected }
    if point.bytes[0] == 4 { agreementKey = point }
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 3)
    try sink.appendCBOR(bytes: keyID.bytes)
    try sink.appendCBOR(unsigned: refusesWhenFull ? 1 : 0)
    try sink.appendCBOR(bytes: (agreementKey ?? P256Point()).bytes)
  }
  #endif
}

/// The parts of the home in a device's flash, which are at fixed places.
extension ProvisionedHome {
  /// The length of the encoding, in bytes.
  static var byteCount: Int { 78 }

  /// Returns the id of the key that signs receipts; nil without a home. `home` is from ``Provision/home(in:)``.
  static func keyID(in home: Span<UInt8>) -> KeyID? {
    home.isEmpty ? nil : KeyID(home.extracting(2..<10))
  }

  /// Returns the rule about keeping the audit log.
  static func keeping(in home: Span<UInt8>) -> AuditKeeping {
    home.isEmpty ? .newest : home[10] == 1 ? .refuse : .drop
  }

  /// Returns the home's key for agreement; nil if there is none.
  static func agreementKey(in home: Span<UInt8>) -> P256Point? {
    home.isEmpty || home[13] != 4 ? nil : P256Point(home.extracting(13..<78))
  }
}
