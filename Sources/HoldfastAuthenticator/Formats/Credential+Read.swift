import HoldfastCore
import HoldfastOpenSSL

extension Credential {
  /// The most bytes of a file of credentials.
  public static let maximumFileByteCount = 1 << 20
  /// The most accounts of one file.
  public static let maximumAccountCount = 1000
  /// The highest counter that Holdfast keeps. Source: docs/protocol.md, Encodings.
  static let maximumCounter: UInt64 = 1 << 53 - 1

  /// Reads every account of a file, at least one.
  ///
  /// The file is wholly read or not at all. `bytes` hold secrets: whoever has them wipes them.
  public static func read(
    _ bytes: Span<UInt8>, format: CredentialFormat, parameters: borrowing ImportParameters = ImportParameters()
  ) throws(ImportFault) -> [Credential] {
    guard bytes.count <= maximumFileByteCount else { throw .tooLarge }
    let credentials =
      switch format {
      case .otpauth: try readURIs(bytes, user: parameters.user)
      case .migration: try readMigration(bytes, user: parameters.user)
      case .pskc: try readContainer(bytes, parameters: parameters)
      case .base32, .hex, .raw: [try readBareSecret(bytes, format: format, parameters: parameters)]
      }
    guard !credentials.isEmpty else { throw .noAccount }
    guard credentials.count <= maximumAccountCount else { throw .tooLarge }
    guard parameters.user == nil || credentials.count == 1 else { throw .severalAccounts }
    return credentials
  }

  /// Checks everything that a file may say wrongly, and makes the credential.
  static func checked(
    issuer: String, user: String, method: CodeMethod, nextCounter: UInt64, secret: consuming SecretBytes
  ) throws(ImportFault) -> Credential {
    guard secret.count >= 1 else { throw .invalidSecret }
    guard secret.count <= maximumSecretByteCount else { throw .secretTooLong }
    guard !user.isEmpty, isPlainText(user), isPlainText(issuer) else { throw .invalidName }
    guard user.utf8.count <= maximumUserByteCount else { throw .userTooLong }
    guard issuer.utf8.count <= maximumIssuerByteCount else { throw .issuerTooLong }
    guard nextCounter <= maximumCounter else { throw .invalidCounter }
    return Credential(issuer: issuer, user: user, method: method, nextCounter: nextCounter, secret: secret)
  }
}

extension Credential {
  /// The bytes of a secret below which guessing it is thinkable: 128 bits. Source: RFC 4226 §4, R6.
  public static let leastSecretByteCount = 16

  /// Whether the secret is shorter than 128 bits, or than the hash's output, which is what both RFCs recommend.
  ///
  /// Source: RFC 4226 §4, R6; RFC 6238 §3, R6. Codes are as well made with such a secret; it is a thing to warn of.
  public var isShort: Bool {
    secret.count < max(Self.leastSecretByteCount, method.hash.byteCount)
  }
}

extension CodeMethod {
  /// The hash under the codes.
  fileprivate var hash: OATHHash {
    switch self {
    case .hotp(let hash, _), .totp(let hash, _, _): hash
    case .ocra(let suite): suite.hash
    }
  }
}
