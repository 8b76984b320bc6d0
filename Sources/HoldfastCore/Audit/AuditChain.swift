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

  /// Goes one entry further: `SHA-256("holdfast/1 audit" ‖ 0x00 ‖ head ‖ entry)`. Source: docs/audit-log.md.
  public mutating func advance<Crypto: Cryptography & ~Copyable>(
    over entry: Span<UInt8>, using cryptography: inout Crypto
  ) throws(CryptographyFailure) {
    var hash = try cryptography.sha256()
    hash.append(domain: "holdfast/1 audit")
    hash.append(head.bytes)
    hash.append(entry)
    head = try hash.finish()
    count += 1
  }
}
