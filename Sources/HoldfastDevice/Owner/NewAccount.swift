import HoldfastCore
import HoldfastOpenSSL

/// An account whose secret was made elsewhere.
public final class NewAccount: Sendable {
  let purpose: CodePurpose
  let account: CodeAccount
  let secret: SecretBytes

  /// Nil unless `secret` has 1 to 64 bytes and `nextPosition` is at most 2^53 - 1.
  public init?(purpose: CodePurpose, method: CodeMethod, nextPosition: UInt64 = 0, secret: consuming SecretBytes) {
    guard (1...64).contains(secret.count), nextPosition <= maximumInteger else { return nil }
    self.purpose = purpose
    account = CodeAccount(method: method, nextPosition: nextPosition)
    self.secret = secret
  }

  /// Whether a device can verify its codes.
  var isVerifiable: Bool { CodeAccount.canVerify(account.method, for: purpose) }

  func secretCopy() -> CodeSecret {
    var copy = CodeSecret()
    // It has room for every secret that there can be.
    secret.withBytes { try? copy.append($0) }
    return copy
  }

  /// As it begins in the place of the account that `user` has with `known` as its secret.
  func account(after user: UserRecord, _ known: borrowing CodeSecret) -> CodeAccount {
    guard let earlier = user.account(purpose) else { return account }
    var begun = account
    secret.withBytes { begun.carryOn(with: $0, after: earlier, known.bytes) }
    return begun
  }
}
