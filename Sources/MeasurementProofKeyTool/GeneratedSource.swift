import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The Swift source that assembles the two keys of each release from shares at run time.
///
/// Each byte is the exclusive or of three shares. Two of them come from
/// `SHA-256("holdfast/1 key shares" ‖ 0x00 ‖ purpose (u8) ‖ index (u8) ‖ share (u8) ‖ key)`, so that the same keys give the
/// same program. The third share completes the byte. The root is not built in.
package struct GeneratedSource: ~Copyable {
  package let text: String

  package init(_ roots: borrowing ReleaseRoots) throws(CryptographyFailure) {
    var proofKeys: [[UInt8]] = []
    var evidenceKeys: [[UInt8]] = []
    for index in 0..<roots.count {
      let keys = try Self.keys(of: roots.root(at: index))
      proofKeys.append(keys.proof)
      evidenceKeys.append(keys.evidence)
    }
    text = """
      // Made by MeasurementProofKeyTool from the roots in mpk.key, or from the development root.
      import HoldfastCore

      enum GeneratedKeys {
        static let isDevelopmentKey = \(roots.isDevelopmentRoot)
        static let count = \(roots.count)

      \(try Self.functions("MeasurementProofKey", purpose: 0, proofKeys))
      \(try Self.functions("EvidenceKey", purpose: 1, evidenceKeys))}

      """
  }

  /// Returns the two keys of a release: MPK, 16 bytes, and the evidence key, 32 bytes.
  package static func keys(of root: borrowing ReleaseRoot) throws(CryptographyFailure) -> (
    proof: [UInt8], evidence: [UInt8]
  ) {
    var cryptography = OpenSSLCryptography()
    return (
      bytes(of: try measurementProofKey(of: root, using: &cryptography)),
      bytes(of: try evidenceKey(of: root, using: &cryptography))
    )
  }

  private static func bytes<let count: Int>(of key: borrowing Secret<count>) -> [UInt8] {
    var bytes: [UInt8] = []
    key.withBytes { bytes.append($0) }
    return bytes
  }

  /// Returns the source of `assembleNAME(_:into:)`, with a separate function for each key.
  private static func functions(_ name: String, purpose: UInt8, _ keys: [[UInt8]]) throws(CryptographyFailure) -> String
  {
    var text = "  static func assemble\(name)(_ index: Int, into key: inout MutableSpan<UInt8>) {\n    switch index {\n"
    for index in keys.indices { text += "    case \(index): assemble\(name)\(index)(&key)\n" }
    text += "    default: break\n    }\n  }\n"
    for (index, key) in keys.enumerated() {
      let first = try share(0, purpose, index, key)
      let second = try share(1, purpose, index, key)
      text += "\n  private static func assemble\(name)\(index)(_ key: inout MutableSpan<UInt8>) {\n"
      for position in key.indices.sorted(by: { (first[$0], $0) < (first[$1], $1) }) {
        let third = key[position] ^ first[position] ^ second[position]
        text += "    key[\(position)] = opaque(\(first[position])) ^ opaque(\(second[position])) ^ opaque(\(third))\n"
      }
      text += "  }\n"
    }
    return text
  }

  /// Returns a share for each byte of a key of at most 32 bytes.
  private static func share(
    _ number: UInt8, _ purpose: UInt8, _ index: Int, _ key: [UInt8]
  ) throws(CryptographyFailure) -> Digest {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(domain: "holdfast/1 key shares")
    for byte in [purpose, UInt8(truncatingIfNeeded: index), number] { hash.append(byte) }
    hash.append(key.span)
    return try hash.finish()
  }
}
