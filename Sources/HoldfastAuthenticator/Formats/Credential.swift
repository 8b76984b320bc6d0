import HoldfastCore
import HoldfastOpenSSL

/// An account's secret and its code method, during import or export: the content of a URI, a key container or an
/// activation.
package final class Credential: Sendable {
  /// The largest length of a user's name, in UTF-8 bytes.
  package static let maximumUserByteCount = 32
  /// The largest length of an issuer's name, in UTF-8 bytes.
  package static let maximumIssuerByteCount = 64
  /// The largest length of a secret, in bytes.
  package static let maximumSecretByteCount = 128

  /// The name of the issuer; empty if the source does not name one.
  package let issuer: String
  /// The name of the user.
  package let user: String
  /// The method that makes codes from the secret.
  package let method: CodeMethod
  /// The first counter that has not been used, for methods with a counter; otherwise 0.
  package let nextCounter: UInt64
  /// The shared secret, 1 to 128 bytes.
  package let secret: SecretBytes

  /// Creates a credential from its parts, without checking them.
  package init(
    issuer: String = "", user: String, method: CodeMethod, nextCounter: UInt64 = 0, secret: consuming SecretBytes
  ) {
    self.issuer = issuer
    self.user = user
    self.method = method
    self.nextCounter = nextCounter
    self.secret = secret
  }
}

/// The formats of a file of credentials.
package enum CredentialFormat: String, Sendable, CaseIterable {
  /// `otpauth://` URIs, one per line.
  case otpauth
  /// `otpauth-migration://` URIs, one per line: all parts of one export.
  case migration
  /// A Portable Symmetric Key Container. Source: RFC 6030.
  case pskc
  /// One secret in base32. Source: RFC 4648 §6.
  case base32
  /// One secret in hexadecimal digits.
  case hex
  /// One secret as raw bytes.
  case raw

  /// Detects the format from the first bytes. Returns nil for a bare secret: the three formats of a secret look alike,
  /// so the caller must name one.
  package static func detect(_ bytes: Span<UInt8>) -> CredentialFormat? {
    var start = bytes.starts(with: "\u{FEFF}") ? 3 : 0
    while start < bytes.count, isWhitespace(bytes[start]) { start += 1 }
    let rest = bytes.extracting(start..<bytes.count)
    if rest.starts(with: "otpauth://") { return .otpauth }
    if rest.starts(with: "otpauth-migration://") { return .migration }
    return rest.starts(with: "<") ? .pskc : nil
  }
}

/// Whether `byte` is a space, a tab or the end of a line.
func isWhitespace(_ byte: UInt8) -> Bool {
  byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d
}

extension Span where Element == UInt8 {
  /// Whether the span begins with the bytes of `prefix`.
  func starts(with prefix: StaticString) -> Bool {
    guard count >= prefix.utf8CodeUnitCount else { return false }
    for index in 0..<prefix.utf8CodeUnitCount where unsafe self[index] != prefix.utf8Start[index] { return false }
    return true
  }
}

extension Credential {
  /// The largest size of a file of credentials, in bytes.
  package static let maximumFileByteCount = 1 << 20
  /// The largest number of accounts in one file.
  package static let maximumAccountCount = 1000
  /// The highest counter that Holdfast stores. Source: docs/protocol.md, Encodings.
  package static let maximumCounter: UInt64 = 1 << 53 - 1

  /// Reads every account of a file, at least one.
  ///
  /// Either all accounts are read or none. `bytes` hold secrets; the caller wipes them.
  package static func read(
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

  /// Makes a credential after checking every value that a file can state.
  package static func checked(
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

  /// The length of a secret, in bytes, below which guessing becomes feasible: 128 bits. Source: RFC 4226 §4, R6.
  package static let leastSecretByteCount = 16

  /// Whether the secret is shorter than 128 bits or than the hash's output, the lengths that the RFCs recommend.
  ///
  /// Source: RFC 4226 §4, R6; RFC 6238 §3, R6. A short secret still makes valid codes, so callers only warn about it.
  package var isShort: Bool {
    secret.count < max(Self.leastSecretByteCount, method.hash.byteCount)
  }
}

extension CodeMethod {
  /// The hash that the codes are computed with.
  fileprivate var hash: OATHHash {
    switch self {
    case .hotp(let hash, _), .totp(let hash, _, _): hash
    case .ocra(let suite): suite.hash
    }
  }
}

extension Credential {
  /// Reads a file that holds only one secret. The other fields come from ``ImportParameters/account``.
  ///
  /// Base32 and hex may end in a newline. A raw secret is every byte of the file, including a newline at the end,
  /// because it may be part of the secret.
  static func readBareSecret(
    _ bytes: Span<UInt8>, format: CredentialFormat, parameters: borrowing ImportParameters
  ) throws(ImportFault) -> Credential {
    guard let account = parameters.account else { throw .accountNeeded }
    return try checked(
      issuer: account.issuer, user: parameters.user ?? account.user, method: account.method,
      nextCounter: account.nextCounter, secret: try bareSecret(bytes, format: format))
  }

  /// Reads a file that holds only one secret, in `base32`, `hex` or `raw`. The secret has 1 to
  /// ``maximumSecretByteCount`` bytes.
  ///
  /// - Throws: `invalidSecret` for text outside the format or an empty secret, `secretTooLong`.
  package static func bareSecret(_ bytes: Span<UInt8>, format: CredentialFormat) throws(ImportFault) -> SecretBytes {
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

  /// Returns `bytes` without a newline at the end.
  @_lifetime(copy bytes)
  private static func firstLine(_ bytes: Span<UInt8>) -> Span<UInt8> {
    var end = bytes.count
    if end > 0, bytes[end - 1] == 0x0a { end -= 1 }
    if end > 0, end < bytes.count, bytes[end - 1] == 0x0d { end -= 1 }
    return bytes.extracting(0..<end)
  }
}
