import HoldfastCore
import HoldfastOpenSSL

/// The keys that an issuer shares with one release of an app. Both are derived from the release's root in `mpk.key`.
public struct ReleaseKeys: ~Copyable, Sendable {
  /// The id of the measurement proof key, 8 bytes, by which evidence names its release.
  public let id: KeyID
  /// The measurement proof key, 16 bytes.
  package let proof: MeasurementProofKey
  /// The evidence key, 32 bytes.
  package let evidence: EvidenceKey

  /// Derives the keys of a release.
  ///
  /// - Parameter root: The release's root, 16 bytes: a line of 32 hexadecimal digits in `mpk.key`.
  /// - Throws: ``CryptographyFailure`` if the cryptographic library fails.
  public init(of root: borrowing Secret<16>) throws(CryptographyFailure) {
    var cryptography = OpenSSLCryptography()
    try self.init(
      proof: try measurementProofKey(of: root, using: &cryptography),
      evidence: try evidenceKey(of: root, using: &cryptography))
  }

  /// Creates the keys from a measurement proof key of 16 bytes and an evidence key of 32 bytes.
  package init(
    proof: consuming MeasurementProofKey, evidence: consuming EvidenceKey
  ) throws(CryptographyFailure) {
    var cryptography = OpenSSLCryptography()
    id = try measurementProofKeyID(proof, using: &cryptography)
    self.proof = proof
    self.evidence = evidence
  }

  /// Derives the keys of the newest release in an app's key file: the one of an image that is built with the file.
  ///
  /// - Parameter text: The content of `mpk.key`: 1 to 64 roots of 32 hexadecimal digits, one a line, newest first.
  /// - Throws: ``ReleaseKeysError``.
  public init(newestInKeyFile text: Span<UInt8>) throws(ReleaseKeysError) {
    let roots: ReleaseRoots
    do throws(KeyFileFault) { roots = try ReleaseRoots(parsing: text) } catch { throw .malformedKeyFile }
    do throws(CryptographyFailure) { self = try ReleaseKeys(of: roots.root(at: 0)) } catch { throw .cryptography }
  }
}

/// The reasons why the keys of a release cannot be read. They hold nothing of the file.
public enum ReleaseKeysError: Error, Equatable {
  /// The text is not 1 to 64 different roots of 32 hexadecimal digits.
  case malformedKeyFile
  /// The cryptographic library failed.
  case cryptography
}
