import Glibc
import HoldfastCore
import HoldfastOpenSSL
import Synchronization

/// The keys of this release and of older ones. Each is stored in shares, from which it is assembled for each use.
///
/// A release has two keys, derived from its root in `mpk.key`. The measurement proof key (MPK) proves measurements, and every
/// token contains it. The evidence key authenticates evidence, and only the app and the attestation service know it.
public enum BuiltInKeys {
  /// Whether this build uses the development key, which is public and protects nothing.
  public static var isDevelopmentKey: Bool { GeneratedKeys.isDevelopmentKey }

  /// The number of releases: index 0 is the current one, and older ones follow.
  public static var count: Int { GeneratedKeys.count }

  /// The measurement proof key of this release, 16 bytes.
  public static var current: MeasurementProofKey { key(at: 0) }

  /// Returns the measurement proof key at `index`, which must be below ``count``: 16 bytes.
  public static func key(at index: Int) -> MeasurementProofKey {
    precondition(index >= 0 && index < count)
    var key = MeasurementProofKey()
    key.withMutableBytes { GeneratedKeys.assembleMeasurementProofKey(index, into: &$0) }
    return key
  }

  /// Returns the evidence key at `index`, which must be below ``count``: 32 bytes.
  public static func evidenceKey(at index: Int) -> EvidenceKey {
    precondition(index >= 0 && index < count)
    var key = EvidenceKey()
    key.withMutableBytes { GeneratedKeys.assembleEvidenceKey(index, into: &$0) }
    return key
  }

  /// Returns the measurement proof key with that id; nil if it is not built in.
  ///
  /// - Throws: `cryptography` if the library fails.
  public static func key(named id: KeyID) throws(MeasurementError) -> MeasurementProofKey? {
    for index in 0..<count {
      let key = key(at: index)
      if try keyID(of: key) == id { return key }
    }
    return nil
  }

  /// Returns the id of a measurement proof key.
  ///
  /// - Throws: `cryptography` if the library fails.
  public static func keyID(of key: borrowing MeasurementProofKey) throws(MeasurementError) -> KeyID {
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return try measurementProofKeyID(key, using: &cryptography)
    } catch {
      throw .cryptography
    }
  }
}

extension BuiltInKeys {
  /// Warns on standard error that the development key is built in, once per process; otherwise does nothing.
  ///
  /// Baselines and proofs call this themselves.
  public static func warnOfDevelopmentKey() {
    guard isDevelopmentKey, !hasWarned.exchange(true, ordering: .relaxed) else { return }
    let text = """
      holdfast: warning: this build uses the development measurement proof key, which is public; a product is built with \
      an mpk.key

      """
    _ = unsafe write(STDERR_FILENO, text, text.utf8.count)
  }
}

private let hasWarned = Atomic(false)
