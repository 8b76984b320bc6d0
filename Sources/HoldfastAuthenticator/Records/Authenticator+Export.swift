import HoldfastOpenSSL

extension Authenticator {
  /// A record with its secret, to go elsewhere. A wrong PIN gives a wrong secret, and nothing tells.
  ///
  /// Throws `protectionMismatch`, `notConfirmed`, `interrupted`, `unknownRecord`; `busy`, `failed`.
  public func credential(
    of record: Record, with protector: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) -> Credential {
    let stored = try stored(record.user, record.index)
    let secret = try stored.usableSecret().unblinded(with: protector)
    return Credential(
      issuer: stored.record.issuer, user: stored.record.user, method: stored.record.method,
      nextCounter: stored.record.nextCounter, secret: secret)
  }
}
