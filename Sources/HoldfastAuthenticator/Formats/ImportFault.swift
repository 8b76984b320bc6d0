import HoldfastCore
import HoldfastOpenSSL

/// Why credentials could not be read.
package enum ImportFault: Error, Equatable, Sendable {
  /// Not well-formed in its format.
  case malformed
  /// Well-formed, and no account is in it.
  case noAccount
  /// Longer than ``Credential/maximumFileByteCount``, or more than ``Credential/maximumAccountCount`` accounts.
  case tooLarge
  /// A bare secret that came without the account it belongs to.
  case accountNeeded
  /// One user was named for a file of several accounts.
  case severalAccounts

  /// A secret that is absent, empty or not in its alphabet.
  case invalidSecret
  /// A secret of more than ``Credential/maximumSecretByteCount`` bytes.
  case secretTooLong
  /// A name that is absent, not UTF-8, or has control characters in it.
  case invalidName
  /// A user of more than ``Credential/maximumUserByteCount`` bytes.
  case userTooLong
  /// An issuer of more than ``Credential/maximumIssuerByteCount`` bytes.
  case issuerTooLong
  /// The same parameter, twice.
  case repeatedParameter
  /// A counter that is absent where one is needed, not a number, or above 2^53 - 1.
  case invalidCounter
  /// Digits that are not a number from 4 to 10, or not those of the suite.
  case invalidDigits
  /// A period that is not a number from 1 to 86,400 seconds.
  case invalidPeriod

  /// A hash, suite, cipher or kind of code that Holdfast does not have.
  case unsupportedAlgorithm
  /// Something else that the file asks for and Holdfast does not have.
  case unsupportedFeature

  /// Part `number`, counted from 1, of `count` parts of an export is absent.
  case missingPart(number: Int, count: Int)
  /// Part `number`, counted from 1, is there twice.
  case repeatedPart(number: Int)
  /// The URI on line `line`, counted from 1 over lines that are not empty, belongs to another export.
  case foreignPart(line: Int)

  /// The container is encrypted under a key, and none was given.
  case keyNeeded
  /// The container is encrypted under a passphrase, and none was given.
  case passphraseNeeded
  /// The key or passphrase does not open the container, or its values were changed.
  case wrongKey
  /// An encrypted value without the MAC that its cipher needs.
  case missingMAC
  /// The container is signed, and nobody checked by whom.
  case signatureNotChecked
  /// The container limits how a key may be used (dates, PIN, number of uses), which nobody here would enforce.
  case policyNotEnforced
}

/// What a file of credentials does not say itself.
package struct ImportParameters: ~Copyable, Sendable {
  /// Names the user of the one account there is, in place of the name in the file.
  package var user: String?
  /// The account of a bare secret.
  package var account: Account?
  /// What opens an encrypted container.
  package var containerKey: ContainerKey
  /// Whether a signed container is read though its signature is not checked.
  package var acceptsUncheckedSignature = false
  /// Whether keys are taken whose policy (dates, PIN, number of uses, device binding) nobody will enforce.
  package var acceptsUnenforcedPolicy = false

  package init(user: String? = nil, account: Account? = nil, containerKey: consuming ContainerKey = .none) {
    self.user = user
    self.account = account
    self.containerKey = containerKey
  }

  /// All of an account but its secret.
  package struct Account: Sendable {
    package let issuer: String
    package let user: String
    package let method: CodeMethod
    package let nextCounter: UInt64

    package init(issuer: String = "", user: String, method: CodeMethod, nextCounter: UInt64 = 0) {
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
package enum ContainerKey: ~Copyable, Sendable {
  case none
  /// The key itself: 16, 24 or 32 bytes, as the container's cipher has it.
  case preShared(SecretBytes)
  /// The UTF-8 bytes of a passphrase.
  case passphrase(SecretBytes)
}
