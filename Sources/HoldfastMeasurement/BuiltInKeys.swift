import Glibc
import HoldfastCore
import HoldfastOpenSSL
import Synchronization

/// The keys of this release and of older ones, each in shares that are assembled when it is used.
///
/// A release has two keys, which follow from its root in `mpk.key`: the measurement proof key proves measurements, and every
/// token contains it; the evidence key authenticates evidence, and only the app and the attestation service know it.
public enum BuiltInKeys {
  /// Whether this is the development key, which everybody knows: no protection.
  public static var isDevelopmentKey: Bool { GeneratedKeys.isDevelopmentKey }

  /// How many releases there are: the current one first, then older ones.
  public static var count: Int { GeneratedKeys.count }

  /// The measurement proof key of this release, 16 bytes.
  public static var current: MeasurementProofKey { key(at: 0) }

  /// The measurement proof key at `index`, which must be below ``count``: 16 bytes.
  public static func key(at index: Int) -> MeasurementProofKey {
    precondition(index >= 0 && index < count)
    var key = MeasurementProofKey()
    key.withMutableBytes { GeneratedKeys.assembleMeasurementProofKey(index, into: &$0) }
    return key
  }

  /// The evidence key at `index`, which must be below ``count``: 32 bytes.
  public static func evidenceKey(at index: Int) -> EvidenceKey {
    precondition(index >= 0 && index < count)
    var key = EvidenceKey()
    key.withMutableBytes { GeneratedKeys.assembleEvidenceKey(index, into: &$0) }
    return key
  }

  /// The measurement proof key with that id, or nil.
  ///
  /// - Throws: `cryptography` when the library fails.
  public static func key(named id: KeyID) throws(MeasurementError) -> MeasurementProofKey? {
    for index in 0..<count {
      let key = key(at: index)
      if try keyID(of: key) == id { return key }
    }
    return nil
  }

  /// Names a measurement proof key.
  ///
  /// - Throws: `cryptography` when the library fails.
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
  /// Says on standard error that the development key is built in, once in a process; does nothing where it is not.
  ///
  /// Baselines and proofs do this by themselves.
  public static func warnOfDevelopmentKey() {
    guard isDevelopmentKey, !hasWarned.exchange(true, ordering: .relaxed) else { return }
    let text = """
      holdfast: warning: this build uses the development measurement proof key, which everybody knows; a product is built with \
      an mpk.key

      """
    _ = unsafe write(STDERR_FILENO, text, text.utf8.count)
  }
}

private let hasWarned = Atomic(false)
