/// The fingerprints of all components of a baseline, sorted by the bytes of id.
public struct BaselineFingerprints: Sendable, Hashable {
  /// One for each component.
  public let fingerprints: [ComponentFingerprint]

  /// Takes the fingerprint of each component under a configuration's salt of 32 bytes.
  ///
  /// - Throws: when the cryptographic library fails.
  public init<Backend: Cryptography & ~Copyable>(
    of components: [Component], salt: FixedBytes<32>, using cryptography: inout Backend
  ) throws(CryptographyFailure) {
    var fingerprints: [ComponentFingerprint] = []
    for component in components.sorted(by: { $0.id.precedes($1.id) }) {
      fingerprints.append(try ComponentFingerprint(of: component, salt: salt, using: &cryptography))
    }
    self.fingerprints = fingerprints
  }

  /// Reads the deterministic CBOR array of `[id, fingerprint]`.
  ///
  /// - Throws: `malformed`, `unexpected` (also: unsorted ids) or `tooLong` (more than 64).
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

  /// The deterministic CBOR array of `[id, fingerprint]`.
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

  /// The components that differ between `self`, which is now, and `baseline`: changed, new or gone; sorted.
  public func changedComponents(since baseline: BaselineFingerprints) -> [ComponentID] {
    var changed: [ComponentID] = []
    for entry in fingerprints where !baseline.fingerprints.contains(entry) { changed.append(entry.id) }
    for entry in baseline.fingerprints where !fingerprints.contains(where: { $0.id == entry.id }) {
      changed.append(entry.id)
    }
    return changed.sorted { $0.precedes($1) }
  }
}
