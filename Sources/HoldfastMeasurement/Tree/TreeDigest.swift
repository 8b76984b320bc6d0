import HoldfastCore
import HoldfastOpenSSL

/// The digest of bytes as a tree of one level: chunks are hashed by themselves, and the root is the hash of their hashes.
///
/// The leaf of a chunk is `SHA-256("holdfast/1 leaf" ‖ 0x00 ‖ u64 index ‖ chunk)`, the root
/// `SHA-256("holdfast/1 tree" ‖ 0x00 ‖ u64 chunk size ‖ u64 byte count ‖ leaves)`. All chunks have 131,072 bytes, except the last one,
/// which has 1 to 131,072; no bytes have no chunk. Source: docs/measurement.md, "Tree digests".
package enum TreeDigest {
  /// The byte count of every chunk but the last one. It is part of the format.
  package static let chunkByteCount = 128 << 10

  /// Returns the number of chunks of so much input.
  static func chunkCount(of byteCount: UInt64) -> Int {
    Int((byteCount + UInt64(chunkByteCount) - 1) / UInt64(chunkByteCount))
  }

  /// Returns the leaf of a chunk.
  ///
  /// - Throws: if the cryptographic library fails.
  static func leaf(of chunk: Span<UInt8>, at index: Int) throws(CryptographyFailure) -> Digest {
    var hash = SHA256Stream()
    hash.append(domain: "holdfast/1 leaf")
    hash.append(bigEndian: UInt64(index))
    hash.append(chunk)
    return try hash.finish()
  }

  /// Returns the root over the leaves of all chunks, in their order.
  ///
  /// - Throws: if the cryptographic library fails.
  static func root(of leaves: some Sequence<Digest>, byteCount: UInt64) throws(CryptographyFailure) -> Digest {
    var hash = SHA256Stream()
    hash.append(domain: "holdfast/1 tree")
    hash.append(bigEndian: UInt64(chunkByteCount))
    hash.append(bigEndian: byteCount)
    for leaf in leaves { hash.append(leaf.bytes) }
    return try hash.finish()
  }
}
