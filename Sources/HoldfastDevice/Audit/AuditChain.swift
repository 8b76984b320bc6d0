import HoldfastCore
import HoldfastOpenSSL

/// The head of a hash chain over audit entries: whoever knows it knows whether an entry before it was changed.
public struct AuditChain: Sendable, Equatable {
  /// How many entries there are; the sequence number of the last one.
  public var count: UInt64
  /// The hash of the last entry; 32 zero bytes before the first.
  public var head: Digest

  /// No entry yet.
  public init() {
    (count, head) = (0, Digest())
  }

  public init(count: UInt64, head: Digest) {
    (self.count, self.head) = (count, head)
  }

  /// Goes one entry further: `SHA-256("holdfast/1 audit" ‖ 0x00 ‖ head ‖ entry)`.
  ///
  /// Source: DESIGN §6. Throws when the cryptographic library fails.
  public mutating func advance(over entry: Span<UInt8>) throws(CryptographyFailure) {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(domain: "holdfast/1 audit")
    hash.append(head.bytes)
    hash.append(entry)
    head = try hash.finish()
    count += 1
  }
}

/// What a walk along the audit log found.
public struct AuditReport: Sendable, Equatable {
  /// What the ledger says the last entry is.
  public var recorded: AuditChain
  /// The sequence number of the first entry that is missing, changed or out of place; nil when the whole chain holds.
  public var firstBroken: UInt64?
}
