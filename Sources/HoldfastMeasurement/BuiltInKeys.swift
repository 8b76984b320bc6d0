import HoldfastCore
import HoldfastOpenSSL

/// The measurement proof keys that were built into this program, each in shares that are put together when it is used.
public enum BuiltInKeys {
  /// Whether this is the development key, which everybody knows: no protection.
  public static var isDevelopmentKey: Bool { GeneratedKeys.isDevelopmentKey }

  /// How many keys there are: the current one first, then those of older releases.
  public static var count: Int { GeneratedKeys.count }

  /// The key of this release, 16 bytes.
  public static var current: MeasurementProofKey { key(at: 0) }

  /// The key at `index`, which must be below ``count``.
  public static func key(at index: Int) -> MeasurementProofKey {
    precondition(index >= 0 && index < count)
    var key = MeasurementProofKey()
    key.withMutableBytes { GeneratedKeys.assemble(index, into: &$0) }
    return key
  }

  /// The key with that id, or nil.
  ///
  /// - Throws: `cryptography` when the library fails.
  public static func key(named id: KeyID) throws(MeasurementError) -> MeasurementProofKey? {
    for index in 0..<count {
      let key = key(at: index)
      if try keyID(of: key) == id { return key }
    }
    return nil
  }

  /// Names a key.
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
