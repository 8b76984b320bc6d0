/// The messages, the check of a signature and the page of the audit log that a peer's last round permits.
///
/// Source: docs/couriers.md, Delivery in a session.
package struct MailAllowance {
  /// The most messages between two rounds.
  package static var messageLimit: Int { 8 }
  /// The key that signed the token of the last round; nil unless its prover proved DM.
  private var issuer: KeyID?
  private var messageCount: UInt8 = 0
  /// Whether a check of a signature is left.
  package private(set) var hasCheck = false
  private var hasPage = false

  /// Creates an allowance of nothing.
  package init() {}

  /// The allowance of the device's owner: one check, and no messages.
  package static var owner: MailAllowance {
    var allowance = MailAllowance()
    allowance.hasCheck = true
    return allowance
  }

  /// Takes note of a round in which a prover proved DM with a token that this key signed. `isNew` says whether it was accepted and is no
  /// repetition, or was denied only because the audit log is full.
  package mutating func note(_ verifyingKey: KeyID?, isNew: Bool) {
    (issuer, messageCount, hasCheck) = (verifyingKey, 0, isNew)
    hasPage = isNew
  }

  /// Counts a message. Returns the key whose list the peer may see; nil if it may send no message.
  mutating func useMessage() -> KeyID? {
    guard messageCount < UInt8(Self.messageLimit) else { return nil }
    messageCount += 1
    return issuer
  }

  /// Uses up the check of a signature. Returns whether there was one.
  package mutating func useCheck() -> Bool {
    defer { hasCheck = false }
    return hasCheck
  }

  /// Uses up the page. Returns whether there was one.
  mutating func usePage() -> Bool {
    defer { hasPage = false }
    return hasPage
  }
}
