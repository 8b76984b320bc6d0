import HoldfastCore

/// The data that the owner writes to a device and the device only reads: its identity, its trusted issuers, its policy.
///
/// In flash, from the first page on: the words magic, version and length, a deterministic CBOR array of that length, padded with 0xFF to
/// whole words, and SHA-256 over everything before it. The array is `[device id, scalar, point, issuers, policy]`, with groups before the
/// issuers if there are any. If the audit log has a home, it is `[device id, scalar, point, groups / null, home, issuers, policy]`.
package struct Provision: ~Copyable {
  /// The device's id.
  package let deviceID: DeviceID
  /// The device's private key, big-endian.
  package let scalar: Secret<32>
  /// The public point of ``scalar``.
  package let publicPoint: P256Point
  /// The issuers that the device trusts.
  package var issuers: IssuerTable
  /// The policy of the device's owner.
  package var policy: FirmwarePolicy
  /// The groups that the device belongs to.
  package let groups: [BoundedText<32>]
  /// The home of the audit log; nil if the log stays at the device.
  package var home: ProvisionedHome?

  /// Makes a provision. The caller ensures that `publicPoint` belongs to `scalar`.
  package init(
    deviceID: DeviceID, scalar: consuming Secret<32>, publicPoint: P256Point, issuers: consuming IssuerTable,
    policy: consuming FirmwarePolicy, groups: [BoundedText<32>] = [], home: ProvisionedHome? = nil
  ) {
    self.deviceID = deviceID
    self.scalar = scalar
    self.publicPoint = publicPoint
    self.issuers = issuers
    self.policy = policy
    self.policy.auditHome = home?.keyID
    self.groups = groups
    self.home = home
  }
}

extension Provision {
  private static var headByteCount: Int { 12 }
  /// The length of the longest array, in bytes.
  private static var longestBody: Int { 4096 }
  /// The letters "HfFw".
  private static var magic: UInt32 { 0x7746_6648 }
  private static var version: UInt32 { 1 }

  /// Reads the provision from flash.
  ///
  /// - Throws: `blank`, `foreign` or `newerVersion` for what the head says, `damaged` if the length, the digest or the array
  ///   is wrong.
  package init<Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable>(
    reading flash: borrowing Flash, using cryptography: inout Crypto
  ) throws(ProvisionFault) {
    let body = try Self.body(of: flash, using: &cryptography)
    do throws(EncodingFault) { try self.init(flash.bytes.extracting(body), using: &cryptography) } catch {
      throw .damaged
    }
  }

  private init<Crypto: Cryptography & ~Copyable>(
    _ body: Span<UInt8>, using cryptography: inout Crypto
  ) throws(EncodingFault) {
    var reader = CBORReader(body)
    let identity = try DeviceIdentity(&reader)
    var groups: [BoundedText<32>] = []
    var home: ProvisionedHome?
    #if !hasFeature(Embedded)
    let hasHome = identity.elementCount == 7
    if identity.elementCount > 5, !(hasHome && reader.null()) {
      groups = try readGroups(&reader, of: identity.deviceID, using: &cryptography)
    }
    if hasHome { home = try ProvisionedHome(&reader) }
    #endif
    let issuers = try IssuerTable(&reader)
    let policy = try FirmwarePolicy.decode(&reader)
    try reader.finish()
    self.init(
      deviceID: identity.deviceID, scalar: identity.scalar, publicPoint: identity.publicPoint, issuers: issuers,
      policy: policy, groups: groups, home: home)
  }

  /// Returns the range of the array, after its digest was found to be right.
  ///
  /// - Throws: as ``init(reading:using:)``.
  static func body<Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable>(
    of flash: borrowing Flash, using cryptography: inout Crypto
  ) throws(ProvisionFault) -> Range<Int> {
    let (magic, version) = (flash.word(at: 0), flash.word(at: 4))
    guard magic == Self.magic else { throw magic == .max ? .blank : .foreign }
    guard version == Self.version else { throw version > Self.version && version != .max ? .newerVersion : .damaged }
    let byteCount = Int(clamping: flash.word(at: 8))
    guard byteCount <= Self.longestBody else { throw .damaged }
    let digestOffset = Self.headByteCount + (byteCount + 3) / 4 * 4
    let bytes = flash.bytes
    do throws(CryptographyFailure) {
      var hash = try cryptography.sha256()
      hash.append(bytes.extracting(0..<digestOffset))
      let digest: Digest = try hash.finish()
      guard digest.bytes.elementsEqual(bytes.extracting(digestOffset..<digestOffset + 32)) else {
        throw CryptographyFailure()
      }
    } catch { throw .damaged }
    return Self.headByteCount..<Self.headByteCount + byteCount
  }

  /// Returns the offset of the trusted issuers; nil if the flash holds no provision.
  static func issuersOffset(in bytes: Span<UInt8>) -> Int? {
    guard bytes.word(at: 0) == magic else { return nil }
    var reader = CBORReader(bytes.extracting(headByteCount..<FlashLayout.provision.upperBound))
    do throws(EncodingFault) {
      for _ in 2..<(try reader.arrayHead()) { try reader.skip() }
      return headByteCount + reader.position
    } catch { return nil }
  }

  /// Erases the owner's pages and writes the provision to them. The digest comes last, so a half-written provision is
  /// invalid.
  ///
  /// - Throws: `tooLarge` if the array is longer than 4096 bytes or the cryptography fails, `flash` if the flash fails.
  package borrowing func write<Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable>(
    into flash: inout Flash, using cryptography: inout Crypto
  ) throws(ProvisionFault) {
    var image = ByteBuffer<4160>()
    do throws(EncodingFault) { try encode(into: &image, using: &cryptography) } catch { throw .tooLarge }
    do throws(CryptographyFailure) {
      var hash = try cryptography.sha256()
      hash.append(image.bytes)
      let digest: Digest = try hash.finish()
      do throws(EncodingFault) { try image.append(digest.bytes) } catch { throw CryptographyFailure() }
    } catch { throw .tooLarge }
    do throws(FlashFailure) {
      for page in stride(from: 0, to: FlashLayout.provision.upperBound, by: FlashLayout.pageByteCount) {
        try flash.erasePage(at: page)
      }
      for position in stride(from: 0, to: image.count, by: 4) {
        try flash.programVerified(image.bytes.word(at: position), at: position)
      }
    } catch { throw .flash }
  }

  private borrowing func encode<Crypto: Cryptography & ~Copyable>(
    into image: inout ByteBuffer<4160>, using cryptography: inout Crypto
  ) throws(EncodingFault) {
    var body = ByteBuffer<4096>()
    try body.appendCBOR(array: home != nil ? 7 : groups.count == 0 ? 5 : 6)
    try body.appendCBOR(bytes: deviceID.bytes)
    try scalar.withBytes { (bytes: Span<UInt8>) throws(EncodingFault) in try body.appendCBOR(bytes: bytes) }
    try body.appendCBOR(bytes: publicPoint.bytes)
    #if !hasFeature(Embedded)
    if groups.count > 0 {
      try writeGroups(groups, of: deviceID, into: &body, using: &cryptography)
    } else if home != nil {
      try body.appendCBORNull()
    }
    if let home { try home.encode(into: &body) }
    #endif
    try issuers.encode(into: &body)
    try policy.encode(into: &body)
    try image.append(bigEndian: Self.magic.byteSwapped)
    try image.append(bigEndian: Self.version.byteSwapped)
    try image.append(bigEndian: UInt32(body.count).byteSwapped)
    try image.append(body.bytes)
    while image.count % 4 != 0 { try image.append(0xff) }
  }
}

/// The reason that a provision cannot be read or written.
public enum ProvisionFault: Error {
  /// The flash was never provisioned.
  case blank
  /// The flash holds something other than a provision.
  case foreign
  /// A later version of Holdfast wrote the provision.
  case newerVersion
  /// The provision is half written, or was changed later.
  case damaged
  /// The provision is too large for its place in flash.
  case tooLarge
  /// The flash failed.
  case flash
}

/// The identity of a device, the first part of its provision.
struct DeviceIdentity: ~Copyable {
  let deviceID: DeviceID
  let scalar: Secret<32>
  let publicPoint: P256Point
  /// The number of elements of the whole array: 6 if the groups come next, 7 if the groups and the home do.
  let elementCount: Int

  /// Reads the head of the array and its first three elements.
  init(_ reader: inout CBORReader) throws(EncodingFault) {
    let count = try reader.arrayHead()
    guard count >= 5, count <= 7 else { throw .unexpected }
    let deviceID: DeviceID = try reader.fixedBytes()
    let scalarBytes = try reader.byteString()
    let publicPoint: P256Point = try reader.fixedBytes()
    guard let scalar = Secret<32>(copying: scalarBytes) else { throw .unexpected }
    self.deviceID = deviceID
    self.scalar = scalar
    self.publicPoint = publicPoint
    elementCount = count
  }
}

/// Functions that read a provision in parts: as a whole, it is too large for a microcontroller's stack.
extension Provision {
  /// Returns the device's identity, after checking that the rest of the provision can be read too.
  static func identity<Flash: FlashMemory & ~Copyable, Crypto: Cryptography & ~Copyable>(
    in flash: borrowing Flash, using cryptography: inout Crypto
  ) throws(ProvisionFault) -> DeviceIdentity {
    let body = try Self.body(of: flash, using: &cryptography)
    do throws(EncodingFault) {
      var reader = CBORReader(flash.bytes.extracting(body))
      let identity = try DeviceIdentity(&reader)
      for _ in 5..<identity.elementCount { try reader.skip() }
      try checkIssuers(&reader)
      try checkPolicy(&reader)
      try reader.finish()
      return identity
    } catch { throw .damaged }
  }

  /// Writes the list of a key of which the device has no bulletins: the device and its groups.
  static func writeAudiences(of bytes: Span<UInt8>, into list: inout ByteBuffer<248>) throws(EncodingFault) {
    let body = bytes.extracting(headByteCount..<FlashLayout.provision.upperBound)
    var reader = CBORReader(body)
    let count = try reader.arrayHead()
    let device: AudienceID = try reader.fixedBytes()
    for _ in 0..<2 { try reader.skip() }
    if count > 5, !reader.null() {
      try reader.array(of: 2)
      let start = reader.position
      try reader.skip()
      return try list.append(body.extracting(start..<reader.position))
    }
    try list.appendCBOR(array: 1)
    try list.appendCBOR(array: 2)
    try list.appendCBOR(bytes: device.bytes)
    try list.appendCBOR(unsigned: 0)
  }

  /// Returns the home of the audit log in a provision that was checked, as ``ProvisionedHome`` encodes it; no bytes if there is none.
  @_lifetime(copy bytes)
  @inline(never)
  static func home(in bytes: Span<UInt8>) -> Span<UInt8> {
    guard let issuers = issuersOffset(in: bytes), bytes[headByteCount] == 0x87 else { return bytes.extracting(0..<0) }
    return bytes.extracting(issuers - ProvisionedHome.byteCount..<issuers)
  }

  @inline(never)
  private static func checkIssuers(_ reader: inout CBORReader) throws(EncodingFault) {
    let count = try reader.arrayHead()
    guard count <= IssuerTable.maximumCount else { throw .unexpected }
    for _ in 0..<count {
      try reader.array(of: 2)
      let _: KeyID = try reader.fixedBytes()
      _ = try reader.byteString()
    }
  }

  @inline(never)
  private static func checkPolicy(_ reader: inout CBORReader) throws(EncodingFault) {
    _ = try FirmwarePolicy.decode(&reader)
  }

  /// Returns the policy of a provision that was checked; a policy that allows nothing if the provision is not valid.
  @inline(never)
  static func policy(in bytes: Span<UInt8>) -> FirmwarePolicy {
    guard let offset = issuersOffset(in: bytes) else { return .denyAll }
    var reader = CBORReader(bytes.extracting(offset..<FlashLayout.provision.upperBound))
    do throws(EncodingFault) {
      try reader.skip()
      var policy = try FirmwarePolicy.decode(&reader)
      policy.auditHome = ProvisionedHome.keyID(in: home(in: bytes))
      return policy
    } catch { return .denyAll }
  }
}

extension FirmwarePolicy {
  /// A policy that names no command.
  fileprivate static var denyAll: FirmwarePolicy {
    FirmwarePolicy(
      limits: TokenLimits(), acceptsUnsigned: false, acceptsMAC: false, maximumIssueAdvanceSeconds: 0,
      codeLimits: CodeLimits())
  }
}
