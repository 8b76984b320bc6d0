import HoldfastCore
import HoldfastOpenSSL

/// The source code of functions that assemble the keys of an app's releases from shares at run time.
///
/// Each byte is the exclusive or of three shares. Two of them come from
/// `SHA-256("holdfast/1 key shares" ‖ 0x00 ‖ purpose (u8) ‖ index (u8) ‖ share (u8) ‖ key)`, so that the same keys give the
/// same program. The third share completes the byte. The root is not in the source.
package struct ProofKeySource: ~Copyable {
  private var proofKeys: [SplitKey] = []
  private var evidenceKeys: [SplitKey] = []

  /// Derives and splits the keys of each root.
  package init(_ roots: borrowing ReleaseRoots) throws(CryptographyFailure) {
    for index in 0..<roots.count {
      let keys = try ReleaseKeys(of: roots.root(at: index))
      proofKeys.append(try keys.proof.withBytes { (key) throws(CryptographyFailure) in try SplitKey(key, 0, index) })
      evidenceKeys.append(
        try keys.evidence.withBytes { (key) throws(CryptographyFailure) in try SplitKey(key, 1, index) })
    }
  }

  /// The Swift source of `ProofKeys.app`.
  package var swift: String {
    """
    // Made by the plugin HoldfastProofKeys from the roots in mpk.key. Do not publish it: anyone who has it has the keys.
    import HoldfastMeasurement

    extension ProofKeys {
      /// The keys of this app's releases, the current one first.
      nonisolated static var app: ProofKeys {
        ProofKeys(
          count: \(proofKeys.count), measurementProofKey: { assembleMeasurementProofKey($0, &$1) },
          evidenceKey: { assembleEvidenceKey($0, &$1) })
      }
    }

    \(swift("assembleMeasurementProofKey", proofKeys))
    \(swift("assembleEvidenceKey", evidenceKeys))
    """
  }

  /// The Swift source of `ProofKeys.app` for a target without keys, which has the default key.
  package static let defaultSwift = """
    // Made by the plugin HoldfastProofKeys for a target that does without its own key.
    import HoldfastMeasurement

    extension ProofKeys {
      /// The default key, which everybody knows: it protects nothing.
      nonisolated static var app: ProofKeys { .default }
    }

    """

  /// The C source of `hf_proof_keys`, for C99 and later.
  package var c: String {
    """
    /* Made by holdfast proof-keys from the roots in mpk.key. Do not publish it: anyone who has it has the keys. */
    #include <holdfast.h>

    extern const hf_proof_keys_t hf_proof_keys;

    static uint8_t opaque(uint8_t value) {
      volatile uint8_t hidden = value;
      return hidden;
    }

    \(c("measurement_proof_key", byteCount: 16, proofKeys))
    \(c("evidence_key", byteCount: 32, evidenceKeys))
    const hf_proof_keys_t hf_proof_keys = {\(proofKeys.count)u, 0u, measurement_proof_key, evidence_key};

    """
  }

  /// Returns a Swift function that calls a separate function for each key.
  private func swift(_ name: String, _ keys: [SplitKey]) -> String {
    var text = "nonisolated private func \(name)(_ index: Int, _ key: inout MutableSpan<UInt8>) {\n  switch index {\n"
    for index in keys.indices { text += "  case \(index): \(name)\(index)(&key)\n" }
    text += "  default: break\n  }\n}\n"
    for (index, key) in keys.enumerated() {
      text += "\nnonisolated private func \(name)\(index)(_ key: inout MutableSpan<UInt8>) {\n"
      for (position, shares) in key.shuffled {
        let terms = shares.map { "ProofKeys.opaque(\($0))" }
        text += "  key[\(position)] = \(terms.joined(separator: " ^ "))\n"
      }
      text += "}\n"
    }
    return text
  }

  /// Returns a C function that calls a separate function for each key.
  private func c(_ name: String, byteCount: Int, _ keys: [SplitKey]) -> String {
    var text = ""
    for (index, key) in keys.enumerated() {
      text += "static void \(name)_\(index)(uint8_t key[\(byteCount)]) {\n"
      for (position, shares) in key.shuffled {
        let terms = shares.map { "opaque(\($0)u)" }
        text += "  key[\(position)] = (uint8_t)(\(terms.joined(separator: " ^ ")));\n"
      }
      text += "}\n\n"
    }
    text += "static void \(name)(uint32_t index, uint8_t key[\(byteCount)]) {\n  switch (index) {\n"
    for index in keys.indices { text += "  case \(index)u: \(name)_\(index)(key); break;\n" }
    return text + "  default: break;\n  }\n}\n"
  }
}

/// A key in three shares for each byte.
private struct SplitKey {
  /// The shares of each byte, in the order of the key.
  private var shares: [[UInt8]] = []

  /// Splits a key of at most 32 bytes.
  init(_ key: Span<UInt8>, _ purpose: UInt8, _ index: Int) throws(CryptographyFailure) {
    let first = try Self.share(0, purpose, index, key)
    let second = try Self.share(1, purpose, index, key)
    for position in key.indices {
      shares.append([first[position], second[position], key[position] ^ first[position] ^ second[position]])
    }
  }

  /// The positions with their shares, in an order that depends on the shares.
  var shuffled: [(position: Int, shares: [UInt8])] {
    shares.indices.sorted { (shares[$0][0], $0) < (shares[$1][0], $1) }.map { ($0, shares[$0]) }
  }

  private static func share(
    _ number: UInt8, _ purpose: UInt8, _ index: Int, _ key: Span<UInt8>
  ) throws(CryptographyFailure) -> Digest {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(domain: "holdfast/1 key shares")
    for byte in [purpose, UInt8(truncatingIfNeeded: index), number] { hash.append(byte) }
    hash.append(key)
    return try hash.finish()
  }
}
