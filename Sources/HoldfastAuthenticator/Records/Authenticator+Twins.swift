import HoldfastOpenSSL

/// A secret that is stored twice gives the PIN away: only the right one makes the same of both.
extension Authenticator {
  /// Throws `secretTwice` when two of `records`, or one of them and one in the file, have the same secret and are not both
  /// without protection. Those in the file that another PIN protects cannot be told.
  func refuseSecretsTwice(
    _ records: [NewRecord], _ protector: borrowing ProtectionSecret
  ) throws(AuthenticatorFault) {
    for (index, record) in records.enumerated() {
      for other in records[..<index] where protector.kind != .none && !(record.isOpen && other.isOpen) {
        let isSame = record.credential.secret.withBytes { secret in other.credential.hasSecret(secret) }
        if isSame { throw .secretTwice }
      }
    }
    for stored in try tables.records() {
      guard let secret = stored.secret else { continue }
      let isOpen = secret.protection == .none
      guard isOpen || secret.protection.kind == protector.kind else { continue }
      let plain = try isOpen ? secret.unblinded(with: ProtectionSecret.none) : secret.unblinded(with: protector)
      for record in records where !record.replaces(stored.record) {
        let staysOpen = record.isOpen || protector.kind == .none
        guard !(isOpen && staysOpen) else { continue }
        if record.credential.hasSecret(plain.bytes) { throw .secretTwice }
      }
    }
  }
}

extension NewRecord {
  /// Whether it is never protected.
  fileprivate var isOpen: Bool { purpose == .host }

  fileprivate func replaces(_ record: Record) -> Bool {
    index == record.index && credential.user.utf8.elementsEqual(record.user.utf8)
  }
}

extension Credential {
  /// Timing: tells nothing but whether it is.
  fileprivate func hasSecret(_ other: Span<UInt8>) -> Bool {
    secret.withBytes { constantTimeEqual($0, other) }
  }
}
