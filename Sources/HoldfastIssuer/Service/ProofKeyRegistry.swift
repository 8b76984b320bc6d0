import HoldfastCore
import HoldfastOpenSSL

/// The measurement proof keys of all releases that are still approved: the file `mpk.keys`, 16 bytes each.
public struct ProofKeyRegistry: ~Copyable, Sendable {
  private let keys: SecretBytes
  /// The keys' ids, in the order of the file.
  public let ids: [KeyID]

  /// Takes keys one behind the other; nil unless there is at least one, and all are whole.
  public init?(
    _ keys: consuming SecretBytes, using cryptography: inout OpenSSLCryptography
  ) throws(CryptographyFailure) {
    guard keys.count > 0, keys.count % MeasurementProofKey.byteCount == 0 else { return nil }
    var ids: [KeyID] = []
    for index in 0..<keys.count / MeasurementProofKey.byteCount {
      guard let key = proofKey(index, in: keys.bytes) else { return nil }
      ids.append(try measurementProofKeyID(key, using: &cryptography))
    }
    self.keys = keys
    self.ids = ids
  }

  /// A copy of the key with an id; nil when there is none.
  public borrowing func key(_ id: KeyID) -> MeasurementProofKey? {
    guard let index = ids.firstIndex(of: id) else { return nil }
    return proofKey(index, in: keys.bytes)
  }
}

extension MeasurementProofKey {
  static var byteCount: Int { 16 }
}

private func proofKey(_ index: Int, in keys: Span<UInt8>) -> MeasurementProofKey? {
  let start = index * MeasurementProofKey.byteCount
  return MeasurementProofKey(copying: keys.extracting(start..<start + MeasurementProofKey.byteCount))
}
