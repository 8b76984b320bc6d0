import HoldfastCore
import HoldfastOpenSSL

/// The keys of all releases that are still approved: the file `release.keys`.
///
/// Each release has 48 bytes: its measurement proof key (16) and its evidence key (32). The root that they follow from is
/// not kept: the service has no use for it.
public struct ReleaseKeyRegistry: ~Copyable, Sendable {
  /// How many bytes a release has.
  public static let releaseByteCount = 48
  /// The most releases that are registered.
  public static let maximumCount = 256

  private let keys: SecretBytes
  /// The ids of the measurement proof keys, in the order of the file.
  public let ids: [KeyID]

  /// Takes the releases of a file.
  ///
  /// - Parameter keys: 48 bytes for each release.
  /// - Returns: nil unless there is at least one release, at most 256, and all are whole.
  /// - Throws: when the cryptographic library fails.
  public init?(
    _ keys: consuming SecretBytes, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) {
    let count = keys.count / Self.releaseByteCount
    guard (1...Self.maximumCount).contains(count), keys.count % Self.releaseByteCount == 0 else { return nil }
    var ids: [KeyID] = []
    for index in 0..<count {
      guard let key: MeasurementProofKey = part(of: keys.bytes, index, at: 0) else { return nil }
      ids.append(try measurementProofKeyID(key, using: &cryptography))
    }
    self.keys = keys
    self.ids = ids
  }

  /// A copy of the measurement proof key with an id, 16 bytes; nil when there is none.
  public borrowing func proofKey(_ id: KeyID) -> MeasurementProofKey? {
    guard let index = ids.firstIndex(of: id) else { return nil }
    return part(of: keys.bytes, index, at: 0)
  }

  /// A copy of the evidence key of the release whose measurement proof key has an id, 32 bytes; nil when there is none.
  public borrowing func evidenceKey(_ id: KeyID) -> EvidenceKey? {
    guard let index = ids.firstIndex(of: id) else { return nil }
    return part(of: keys.bytes, index, at: 16)
  }

  /// Whether the release with that id has this evidence key; false when there is none. Compared in constant time.
  borrowing func has(_ id: KeyID, _ key: borrowing EvidenceKey) -> Bool {
    guard let known = evidenceKey(id) else { return false }
    return known.withBytes { left in key.withBytes { right in constantTimeEqual(left, right) } }
  }
}

/// A copy of `count` bytes of a release, from an offset on.
private func part<let count: Int>(of keys: Span<UInt8>, _ index: Int, at offset: Int) -> Secret<count>? {
  let start = index * ReleaseKeyRegistry.releaseByteCount + offset
  return Secret<count>(copying: keys.extracting(start..<start + count))
}
