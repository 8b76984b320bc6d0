import HoldfastCore

/// The one row of a ledger that every decision reads and writes.
struct LedgerState: Sendable, Equatable {
  /// Whose ledger this is.
  var deviceID: DeviceID
  /// Unix seconds; only the owner lowers it.
  var clockFloor: UInt64
  /// The furthest that the clock floor was before the owner lowered it, in Unix seconds: of tokens that expired until then
  /// uses and nonces may have been dropped, so that they count as used up.
  var forgottenThrough: UInt64 = 0
  /// How often the server was started.
  var bootCount: UInt64 = 0
  /// How many counted tokens and nonces are kept.
  var keptCount: UInt64 = 0
  /// How many tokens' request numbers are kept.
  var requestCount: UInt64 = 0
  var audit = AuditChain()
  /// The chain up to the newest audit entry that is no longer kept.
  var auditBase = AuditChain()
  var policySeen = PolicySeen.none
  /// How far the counter of an anchored ledger has counted once this state is the newest; nil without an anchor.
  var epoch: UInt64?
  /// The path of the TPM that an anchored ledger was made with.
  var tpm: String?

  /// The device's time: the later of floor and real clock, in Unix seconds.
  func time(realClock: UInt64?) -> UInt64 {
    max(clockFloor, realClock ?? 0)
  }
}

/// The policy that the audit log was told of last.
enum PolicySeen: Sendable, Equatable {
  /// None so far.
  case none
  /// One that could not be taken.
  case unusable
  /// SHA-256 of the file.
  case file(Digest)
}

/// How much a ledger keeps.
public struct LedgerLimits: Sendable {
  /// Counted tokens and compatibility nonces together; nonces take half of it at most.
  public var keptCount: UInt64
  /// Tokens whose request numbers are kept.
  public var requestCount: UInt64
  /// Compatibility nonces of one token.
  public var nonceQuota: UInt64
  /// Trusted issuers.
  public var issuerCount: UInt64
  /// Users.
  public var userCount: UInt64
  /// How many outdated entries of each kind one round drops at most, so that no round takes long.
  public var dropCount: UInt64

  public init(
    keptCount: UInt64 = 1_000_000, nonceQuota: UInt64 = 1024, requestCount: UInt64 = 1_000_000,
    issuerCount: UInt64 = 64, userCount: UInt64 = 100_000, dropCount: UInt64 = 64
  ) {
    (self.keptCount, self.nonceQuota, self.requestCount) = (keptCount, nonceQuota, requestCount)
    (self.issuerCount, self.userCount, self.dropCount) = (issuerCount, userCount, dropCount)
  }
}
