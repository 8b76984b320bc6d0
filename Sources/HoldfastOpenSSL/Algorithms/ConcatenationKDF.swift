import HoldfastCore

/// The Concat KDF with SHA-256.
///
/// Source: SP 800-56A §5.8.2.1; RFC 7518 §4.6.2.
public enum ConcatenationKDF {
  /// Fills `output` from a shared secret and the `OtherInfo` that says what for.
  public static func derive(
    secret: Span<UInt8>, otherInfo: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    var function = try KeyDerivation(.concatenation)
    try function.derive(inputKey: secret, salt: secret.extracting(first: 0), info: otherInfo, into: &output)
  }
}
