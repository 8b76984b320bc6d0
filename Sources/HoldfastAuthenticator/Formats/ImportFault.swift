import HoldfastCore
import HoldfastOpenSSL

/// The reasons why credentials could not be read.
package enum ImportFault: Error, Equatable, Sendable {
  /// The file is not well-formed in its format.
  case malformed
  /// The file is well-formed but holds no account.
  case noAccount
  /// The file is longer than ``Credential/maximumFileByteCount`` or has more than ``Credential/maximumAccountCount``
  /// accounts.
  case tooLarge
  /// A bare secret was given without the account that it belongs to.
  case accountNeeded
  /// A user was named for a file with several accounts.
  case severalAccounts

  /// A secret is absent, empty or not in its alphabet.
  case invalidSecret
  /// A secret has more than ``Credential/maximumSecretByteCount`` bytes.
  case secretTooLong
  /// A name is absent, is not UTF-8, or has control characters.
  case invalidName
  /// A user's name has more than ``Credential/maximumUserByteCount`` bytes.
  case userTooLong
  /// An issuer's name has more than ``Credential/maximumIssuerByteCount`` bytes.
  case issuerTooLong
  /// A parameter occurs twice.
  case repeatedParameter
  /// A required counter is absent, is not a number, or is above 2^53 - 1.
  case invalidCounter
  /// The number of digits is not from 4 to 10, or differs from that of the suite.
  case invalidDigits
  /// The period is not a number from 1 to 86,400 seconds.
  case invalidPeriod

  /// Holdfast does not support the hash, suite, cipher or kind of code.
  case unsupportedAlgorithm
  /// The file requires another feature that Holdfast does not support.
  case unsupportedFeature

  /// Part `number`, counted from 1, of the `count` parts of an export is absent.
  case missingPart(number: Int, count: Int)
  /// Part `number`, counted from 1, occurs twice.
  case repeatedPart(number: Int)
  /// The URI on line `line`, counted from 1 over the lines that are not empty, belongs to another export.
  case foreignPart(line: Int)

  /// The container is encrypted under a key, but no key was given.
  case keyNeeded
  /// The container is encrypted under a passphrase, but no passphrase was given.
  case passphraseNeeded
  /// The key or passphrase does not open the container, or the container's values were changed.
  case wrongKey
  /// An encrypted value lacks the MAC that its cipher requires.
  case missingMAC
  /// The container is signed, but Holdfast does not check the signature.
  case signatureNotChecked
  /// The container limits the use of a key (dates, PIN, number of uses), but Holdfast does not enforce these limits.
  case policyNotEnforced
}

/// The values that a file of credentials does not contain.
package struct ImportParameters: ~Copyable, Sendable {
  /// The user's name, which replaces the name in a file with one account.
  package var user: String?
  /// The account of a bare secret.
  package var account: Account?
  /// The key or passphrase of an encrypted container.
  package var containerKey: ContainerKey
  /// Whether a signed container is accepted although its signature is not checked.
  package var acceptsUncheckedSignature = false
  /// Whether a key is accepted although its policy (dates, PIN, number of uses, device binding) is not enforced.
  package var acceptsUnenforcedPolicy = false

  /// Creates the parameters; both flags are false.
  package init(user: String? = nil, account: Account? = nil, containerKey: consuming ContainerKey = .none) {
    self.user = user
    self.account = account
    self.containerKey = containerKey
  }

  /// The fields of an account without its secret.
  package struct Account: Sendable {
    /// The name of the issuer; may be empty.
    package let issuer: String
    /// The name of the user.
    package let user: String
    /// The method that makes codes from the secret.
    package let method: CodeMethod
    /// The first counter that has not been used, for methods with a counter; otherwise 0.
    package let nextCounter: UInt64

    /// Creates an account from its fields.
    package init(issuer: String = "", user: String, method: CodeMethod, nextCounter: UInt64 = 0) {
      self.issuer = issuer
      self.user = user
      self.method = method
      self.nextCounter = nextCounter
    }
  }
}

/// The key or passphrase of an encrypted container.
///
/// Source: RFC 6030 §6.1 and §6.2.
package enum ContainerKey: ~Copyable, Sendable {
  /// No key: the container is not encrypted.
  case none
  /// A pre-shared key: 16, 24 or 32 bytes, as the container's cipher requires.
  case preShared(SecretBytes)
  /// A passphrase, in UTF-8 bytes.
  case passphrase(SecretBytes)
}
