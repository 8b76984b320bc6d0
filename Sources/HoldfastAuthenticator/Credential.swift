import HoldfastCore
import HoldfastOpenSSL

/// An account's secret and how its codes are made, on its way in or out: what a URI, a key container or an activation holds.
public final class Credential: Sendable {
  /// The most UTF-8 bytes of a user's name.
  public static let maximumUserByteCount = 32
  /// The most UTF-8 bytes of an issuer's name.
  public static let maximumIssuerByteCount = 64
  /// The most bytes of a secret.
  public static let maximumSecretByteCount = 128

  /// Who issued it; empty where nothing says so.
  public let issuer: String
  /// Whose it is.
  public let user: String
  public let method: CodeMethod
  /// The first counter that was not used yet, for methods with a counter; otherwise 0.
  public let nextCounter: UInt64
  /// The shared secret, 1 to 128 bytes.
  public let secret: SecretBytes

  public init(
    issuer: String = "", user: String, method: CodeMethod, nextCounter: UInt64 = 0, secret: consuming SecretBytes
  ) {
    self.issuer = issuer
    self.user = user
    self.method = method
    self.nextCounter = nextCounter
    self.secret = secret
  }
}
