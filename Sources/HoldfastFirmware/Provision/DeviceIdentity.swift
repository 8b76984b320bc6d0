import HoldfastCore

/// Who a device is: the first part of what its owner provisions.
struct DeviceIdentity: ~Copyable {
  let deviceID: DeviceID
  let scalar: Secret<32>
  let publicPoint: P256Point

  /// Reads the head of the array, and its first three elements.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 5)
    let deviceID: DeviceID = try reader.fixedBytes()
    let scalarBytes = try reader.byteString()
    let publicPoint: P256Point = try reader.fixedBytes()
    guard let scalar = Secret<32>(copying: scalarBytes) else { throw .unexpected }
    self.deviceID = deviceID
    self.scalar = scalar
    self.publicPoint = publicPoint
  }
}

/// Reading a provision part by part: whole, it is too large for a microcontroller's stack.
extension Provision {
  /// Who the device is, once everything else was found to be there too.
  static func identity<Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable>(
    in flash: borrowing Flash, using cryptography: inout Crypto
  ) throws(ProvisionFault) -> DeviceIdentity {
    let body = try Self.body(of: flash, using: &cryptography)
    do throws(EncodingFault) {
      var reader = CBORReader(flash.bytes.extracting(body))
      let identity = try DeviceIdentity(&reader)
      try checkIssuers(&reader)
      try checkPolicy(&reader)
      try reader.finish()
      return identity
    } catch { throw .damaged }
  }

  @inline(never)
  private static func checkIssuers(_ reader: inout CBORReader) throws(EncodingFault) {
    _ = try IssuerTable(&reader)
  }

  @inline(never)
  private static func checkPolicy(_ reader: inout CBORReader) throws(EncodingFault) {
    _ = try FirmwarePolicy.decode(&reader)
  }

  /// The policy of a provision that was found to be whole; one that allows nothing where it is not.
  @inline(never)
  static func policy(in bytes: Span<UInt8>) -> FirmwarePolicy {
    guard let offset = issuersOffset(in: bytes) else { return .denyAll }
    var reader = CBORReader(bytes.extracting(offset..<FlashLayout.provision.upperBound))
    do throws(EncodingFault) {
      try reader.skip()
      return try FirmwarePolicy.decode(&reader)
    } catch { return .denyAll }
  }
}

extension FirmwarePolicy {
  /// No command at all.
  fileprivate static var denyAll: FirmwarePolicy {
    FirmwarePolicy(
      limits: TokenLimits(), acceptsUnsigned: false, acceptsMAC: false, maximumIssueAdvanceSeconds: 0,
      codeLimits: CodeLimits())
  }
}
