import HoldfastCore
import HoldfastOpenSSL

extension Credential {
  /// Reads one secret that stands alone in a file; what it is for comes from ``ImportParameters/account``.
  ///
  /// Base32 and hex may end in a newline. A raw secret is every byte of the file, a newline too:
  /// it may be one of the secret's.
  static func readBareSecret(
    _ bytes: Span<UInt8>, format: CredentialFormat, parameters: borrowing ImportParameters
  ) throws(ImportFault) -> Credential {
    guard let account = parameters.account else { throw .accountNeeded }
    return try checked(
      issuer: account.issuer, user: parameters.user ?? account.user, method: account.method,
      nextCounter: account.nextCounter, secret: try bareSecret(bytes, format: format))
  }

  /// The secret that stands alone in a file, in `base32`, `hex` or `raw`; at least one byte.
  public static func bareSecret(_ bytes: Span<UInt8>, format: CredentialFormat) throws(ImportFault) -> SecretBytes {
    let secret: SecretBytes
    do {
      switch format {
      case .base32: secret = try Base32.decode(firstLine(bytes))
      case .hex: secret = try Base16.decode(firstLine(bytes))
      default: secret = SecretBytes(copying: bytes)
      }
    } catch {
      throw .invalidSecret
    }
    guard secret.count >= 1 else { throw .invalidSecret }
    guard secret.count <= maximumSecretByteCount else { throw .secretTooLong }
    return secret
  }

  /// `bytes` without one newline at the end.
  @_lifetime(copy bytes)
  private static func firstLine(_ bytes: Span<UInt8>) -> Span<UInt8> {
    var end = bytes.count
    if end > 0, bytes[end - 1] == 0x0a { end -= 1 }
    if end > 0, end < bytes.count, bytes[end - 1] == 0x0d { end -= 1 }
    return bytes.extracting(0..<end)
  }
}
