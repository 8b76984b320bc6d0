import HoldfastCore
import HoldfastOpenSSL

/// An account's secret and how its codes are made, on its way in or out: what a URI, a key container or an activation holds.
package final class Credential: Sendable {
  /// The most UTF-8 bytes of a user's name.
  package static let maximumUserByteCount = 32
  /// The most UTF-8 bytes of an issuer's name.
  package static let maximumIssuerByteCount = 64
  /// The most bytes of a secret.
  package static let maximumSecretByteCount = 128

  /// Who issued it; empty where nothing says so.
  package let issuer: String
  /// Whose it is.
  package let user: String
  package let method: CodeMethod
  /// The first counter that was not used yet, for methods with a counter; otherwise 0.
  package let nextCounter: UInt64
  /// The shared secret, 1 to 128 bytes.
  package let secret: SecretBytes

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

/// How a file holds credentials.
package enum CredentialFormat: String, Sendable, CaseIterable {
  /// `otpauth://` URIs, one a line.
  case otpauth
  /// `otpauth-migration://` URIs, one a line: every part of one export.
  case migration
  /// A Portable Symmetric Key Container. Source: RFC 6030.
  case pskc
  /// One secret in base32. Source: RFC 4648 §6.
  case base32
  /// One secret in hexadecimal digits.
  case hex
  /// One secret, byte by byte.
  case raw

  /// Tells the format by how `bytes` begin; nil for bare secrets, which must be named because they all look alike.
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
  /// Whether the first bytes are those of `prefix`.
  func starts(with prefix: StaticString) -> Bool {
    guard count >= prefix.utf8CodeUnitCount else { return false }
    for index in 0..<prefix.utf8CodeUnitCount where unsafe self[index] != prefix.utf8Start[index] { return false }
    return true
  }
}

extension Credential {
  /// The most bytes of a file of credentials.
  package static let maximumFileByteCount = 1 << 20
  /// The most accounts of one file.
  package static let maximumAccountCount = 1000
  /// The highest counter that Holdfast keeps. Source: docs/protocol.md, Encodings.
  static let maximumCounter: UInt64 = 1 << 53 - 1

  /// Reads every account of a file, at least one.
  ///
  /// The file is wholly read or not at all. `bytes` hold secrets: whoever has them wipes them.
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

  /// The bytes of a secret below which guessing it is thinkable: 128 bits. Source: RFC 4226 §4, R6.
  package static let leastSecretByteCount = 16

  /// Whether the secret is shorter than 128 bits, or than the hash's output, which is what both RFCs recommend.
  ///
  /// Source: RFC 4226 §4, R6; RFC 6238 §3, R6. Codes are as well made with such a secret; it is a thing to warn of.
  package var isShort: Bool {
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

  /// `bytes` without one newline at the end.
  @_lifetime(copy bytes)
  private static func firstLine(_ bytes: Span<UInt8>) -> Span<UInt8> {
    var end = bytes.count
    if end > 0, bytes[end - 1] == 0x0a { end -= 1 }
    if end > 0, end < bytes.count, bytes[end - 1] == 0x0d { end -= 1 }
    return bytes.extracting(0..<end)
  }
}
