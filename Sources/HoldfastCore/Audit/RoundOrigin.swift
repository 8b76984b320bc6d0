// A microcontroller's log does not have it, for lack of room.
#if !hasFeature(Embedded)
/// The transport of a round and the version of its app, in the audit log.
package struct RoundOrigin: Sendable, Equatable {
  /// The transport; nil if the device does not know it.
  package let transport: RoundTransport?
  /// The version in the token.
  package let version: AppVersion

  /// Creates a record.
  package init(transport: RoundTransport?, version: AppVersion) {
    (self.transport, self.version) = (transport, version)
  }

  /// Reads `transport / null, [major, minor, patch]`.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    var transport: RoundTransport?
    if !reader.null() {
      transport = RoundTransport(rawValue: UInt8(clamping: try reader.unsigned()))
      guard transport != nil else { throw .unexpected }
    }
    try reader.array(of: 3)
    let version = AppVersion(major: try reader.unsigned(), minor: try reader.unsigned(), patch: try reader.unsigned())
    self.init(transport: transport, version: version)
  }

  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    if let transport { try sink.appendCBOR(unsigned: UInt64(transport.rawValue)) } else { try sink.appendCBORNull() }
    try sink.appendCBOR(array: 3)
    for part in [version.major, version.minor, version.patch] { try sink.appendCBOR(unsigned: part) }
  }
}

/// The transport of a round, in the audit log.
///
/// Source: docs/audit-log.md.
package enum RoundTransport: UInt8, Sendable, CaseIterable {
  /// A socket in the file system.
  case socket = 1
  /// A serial line, or a stream socket that replaces one.
  case serial = 2
  /// Bluetooth BR/EDR, L2CAP.
  case l2cap = 3
  /// Bluetooth BR/EDR, RFCOMM.
  case rfcomm = 4
  /// Bluetooth Low Energy.
  case lowEnergy = 5
}
#endif
