import HoldfastCore
import HoldfastOpenSSL

/// What a file of credentials does not say itself.
public struct ImportParameters: ~Copyable, Sendable {
  /// Names the user of the one account there is, in place of the name in the file.
  public var user: String?
  /// The account of a bare secret.
  public var account: Account?
  /// What opens an encrypted container.
  public var containerKey: ContainerKey
  /// Whether a signed container is read though its signature is not checked.
  public var acceptsUncheckedSignature = false
  /// Whether keys are taken whose policy (dates, PIN, number of uses, device binding) nobody will enforce.
  public var acceptsUnenforcedPolicy = false

  public init(user: String? = nil, account: Account? = nil, containerKey: consuming ContainerKey = .none) {
    self.user = user
    self.account = account
    self.containerKey = containerKey
  }

  /// All of an account but its secret.
  public struct Account: Sendable {
    public let issuer: String
    public let user: String
    public let method: CodeMethod
    public let nextCounter: UInt64

    public init(issuer: String = "", user: String, method: CodeMethod, nextCounter: UInt64 = 0) {
      self.issuer = issuer
      self.user = user
      self.method = method
      self.nextCounter = nextCounter
    }
  }
}

/// What opens an encrypted container.
///
/// Source: RFC 6030 §6.1 and §6.2.
public enum ContainerKey: ~Copyable, Sendable {
  case none
  /// The key itself: 16, 24 or 32 bytes, as the container's cipher has it.
  case preShared(SecretBytes)
  /// The UTF-8 bytes of a passphrase.
  case passphrase(SecretBytes)
}
