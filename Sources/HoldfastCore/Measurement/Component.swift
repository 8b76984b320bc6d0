/// The name of one measured thing, such as `app.image`: 1 to 32 bytes of printable ASCII without space.
public typealias ComponentID = BoundedText<32>

/// One measured thing and the SHA-256 digest of its present state.
///
/// A thing that is absent has the digest of no bytes. IM and DM are made from digests, so digests stay in memory.
public struct Component: Sendable, Hashable {
  /// The name of the measured thing.
  public let id: ComponentID
  /// The digest of its present state: SHA-256, 32 bytes.
  public let digest: Digest

  /// Creates a component from its parts.
  public init(id: ComponentID, digest: Digest) {
    self.id = id
    self.digest = digest
  }

  /// Writes `[id, digest]`.
  package func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: 2)
    try sink.appendCBOR(text: id.bytes)
    try sink.appendCBOR(bytes: digest.bytes)
  }

  /// Decodes `[id, digest]`.
  init(from reader: inout CBORReader) throws(EncodingFault) {
    try reader.array(of: 2)
    id = try ComponentID(componentID: reader.textString())
    digest = try reader.fixedBytes()
  }
}

extension BoundedText<32> {
  /// Copies a component's id. Throws `unexpected` unless it is 1 to 32 bytes of printable ASCII without space.
  public init(componentID bytes: Span<UInt8>) throws(EncodingFault) {
    guard let id = Self(bytes), id.isComponentID else { throw .unexpected }
    self = id
  }

  /// Whether this is 1 to 32 bytes of printable ASCII without space.
  var isComponentID: Bool {
    let bytes = bytes
    for index in bytes.indices where bytes[index] <= 0x20 || bytes[index] >= 0x7f { return false }
    return !isEmpty
  }
}

extension BoundedText {
  /// Returns whether these bytes come before those of `other`; a text comes before a longer one that begins with it.
  package func precedes(_ other: Self) -> Bool {
    let left = bytes
    let right = other.bytes
    for index in 0..<min(left.count, right.count) where left[index] != right[index] {
      return left[index] < right[index]
    }
    return left.count < right.count
  }
}

/// The fingerprint of a component at its baseline, which shows later whether the component changed. Neither the digest
/// nor a measurement can be computed from it.
///
/// `HMAC-SHA-256(salt, "holdfast/1 explain" ‖ 0x00 ‖ id ‖ 0x00 ‖ digest)[0..<8]`.
public struct ComponentFingerprint: Sendable, Hashable {
  /// The id of the component.
  public let id: ComponentID
  /// The fingerprint, 8 bytes.
  public let fingerprint: FixedBytes<8>

  /// Creates a fingerprint from its parts.
  public init(id: ComponentID, fingerprint: FixedBytes<8>) {
    self.id = id
    self.fingerprint = fingerprint
  }

  /// Computes the fingerprint of a component under a configuration's salt of 32 bytes.
  ///
  /// - Throws: if the cryptographic library fails.
  public init<Backend: Cryptography & ~Copyable>(
    of component: Component, salt: ConfigurationSalt, using cryptography: inout Backend
  ) throws(CryptographyFailure) {
    var mac = try cryptography.hmacSHA256(key: salt.bytes)
    mac.append(domain: "holdfast/1 explain")
    mac.append(component.id.bytes)
    mac.append(0)
    mac.append(component.digest.bytes)
    let whole: Digest = try mac.finish()
    var fingerprint = FixedBytes<8>()
    for index in 0..<8 { fingerprint[index] = whole[index] }
    self.init(id: component.id, fingerprint: fingerprint)
  }
}

/// The fingerprints of all components of a baseline, sorted by the bytes of id.
public struct BaselineFingerprints: Sendable, Hashable {
  /// One fingerprint for each component, sorted by the bytes of id.
  public let fingerprints: [ComponentFingerprint]

  /// Computes the fingerprint of each component under a configuration's salt of 32 bytes.
  ///
  /// - Throws: if the cryptographic library fails.
  public init<Backend: Cryptography & ~Copyable>(
    of components: [Component], salt: ConfigurationSalt, using cryptography: inout Backend
  ) throws(CryptographyFailure) {
    var fingerprints: [ComponentFingerprint] = []
    for component in components.sorted(by: { $0.id.precedes($1.id) }) {
      fingerprints.append(try ComponentFingerprint(of: component, salt: salt, using: &cryptography))
    }
    self.fingerprints = fingerprints
  }

  /// Decodes the deterministic CBOR array of `[id, fingerprint]`.
  ///
  /// - Throws: `malformed`, `unexpected` (also for unsorted ids) or `tooLong` (for more than 64).
  public init(decoding bytes: Span<UInt8>) throws(EncodingFault) {
    var reader = CBORReader(bytes)
    let count = try reader.arrayHead()
    guard count <= MeasurementConfiguration.maximumComponentCount else { throw .tooLong }
    var fingerprints: [ComponentFingerprint] = []
    for index in 0..<count {
      try reader.array(of: 2)
      let id = try ComponentID(componentID: reader.textString())
      guard index == 0 || fingerprints[index - 1].id.precedes(id) else { throw .unexpected }
      fingerprints.append(ComponentFingerprint(id: id, fingerprint: try reader.fixedBytes()))
    }
    try reader.finish()
    self.fingerprints = fingerprints
  }

  /// Returns the deterministic CBOR array of `[id, fingerprint]`.
  public func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendCBOR(array: fingerprints.count)
    for entry in fingerprints {
      bytes.appendCBOR(array: 2)
      bytes.appendCBOR(text: entry.id.bytes)
      bytes.appendCBOR(bytes: entry.fingerprint.bytes)
    }
    return bytes
  }

  /// Returns the components that differ between `self`, the present state, and `baseline`: changed, new or missing;
  /// sorted.
  package func changedComponents(since baseline: BaselineFingerprints) -> [ComponentID] {
    var changed: [ComponentID] = []
    for entry in fingerprints where !baseline.fingerprints.contains(entry) { changed.append(entry.id) }
    for entry in baseline.fingerprints where !fingerprints.contains(where: { $0.id == entry.id }) {
      changed.append(entry.id)
    }
    return changed.sorted { $0.precedes($1) }
  }
}
