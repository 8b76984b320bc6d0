/// The result of checking a proof.
public enum ProofResult: Sendable, Equatable {
  /// The proof was right, was wrong, or was not given.
  case right, wrong, absent
}

/// The facts by which one round is judged, after its token was opened and its proofs were compared. It holds no secret.
/// The core makes them from the token, the request and the policy; tests change single ones.
public struct AppraisalInput: ~Copyable, Sendable {
  /// The key that signed or authenticated the token; nil for an unsigned one.
  public package(set) var verifyingKey: KeyID?
  /// The token's id (`jti`), 16 bytes.
  public package(set) var tokenID: TokenID
  /// The app that the token names (`sub`), at most 64 bytes.
  public package(set) var subject: BoundedText<64>
  /// The time when the token was issued (`iat`), in Unix seconds.
  public package(set) var issuedAt: UInt64
  /// The time at which the token expires (`exp`), in Unix seconds.
  public package(set) var expires: UInt64
  /// The token's generation (`gen`).
  public package(set) var generation: UInt64
  /// The number of rounds that may be accepted with the token (`max`); nil for no limit.
  public package(set) var maximumUses: UInt64?
  /// The app version in the token (`ver`).
  public package(set) var version: AppVersion
  /// The result of the integrity proof (IMP).
  public package(set) var integrity: ProofResult
  /// The result of the device proof (DMP), for the prover's host.
  public package(set) var device: ProofResult
  /// The command that the prover requests, at most 32 bytes.
  public package(set) var command: BoundedText<32>
  /// Whether the token allows the command: it has no list of commands, or one that names it.
  public package(set) var isCommandInToken: Bool
  /// The factors that the command needs; nil for a command that policy does not know.
  public package(set) var factors: Factors?
  /// Whether any part of the device carries out the command.
  public package(set) var isCarriedOut: Bool
  /// Whether policy allows the command in a compatibility round.
  public package(set) var allowsCompatibility: Bool
  /// The limits that the token must keep.
  public package(set) var limits: TokenLimits
  /// The factors that were given as codes.
  public package(set) var codes: Factors
  /// Whether a code that the command needs, or the user that `host-code` or `user-sync` names, belongs to another user
  /// than the token's `usr` or the other code.
  public package(set) var isAnotherUsersCode: Bool
  /// The user whose codes the command needs, or that a command of users names; nil if there is none.
  public package(set) var codeUser: BoundedText<32>?
  /// The challenge that `host-code` or `seal-request` gives to ``codeUser``; nil for any other command, and if its parameters are
  /// malformed.
  public package(set) var freshChallenge: FixedBytes<8>?
  #if !hasFeature(Embedded)
  /// The last challenge that was issued on this connection; nil if there was none.
  package var connectionChallenge: FixedBytes<8>?
  /// Whether the store adds the state of its bulletins to an acceptance (``Notice/bulletinState``).
  package var tellsBulletins = false
  /// The transport of the round; nil if the device does not know it.
  package var transport: RoundTransport?
  #endif
  /// The results of comparing the codes; nil until they are compared.
  public package(set) var matches: CodeMatches?
  /// The policy's limits of the search for codes.
  public package(set) var codeLimits: CodeLimits
  /// The length of the longest parameter, in characters (Unicode scalars).
  public package(set) var longestParameterLength: Int
  /// The nonce of a compatibility round; nil in a session round.
  public package(set) var compatibilityNonce: Nonce?
  /// The number of the request, at most 2^53 - 1; nil for a request without one.
  public package(set) var requestNumber: UInt64?
  /// The first 16 bytes of ``commandDigest(command:parameterCount:parameter:using:)``; zero for a request without a number.
  public package(set) var requestDigest: FixedBytes<16>
  /// The real clock, in Unix seconds; nil if there is none.
  public package(set) var realClock: UInt64?
  /// The monotonic clock, in milliseconds.
  public package(set) var monotonicMilliseconds: UInt64
  let pin = Pinned()
}

/// The facts that the device's store holds about one round, read in the transaction that will record the round. The rules
/// decide what they mean.
public struct LedgerSnapshot: ~Copyable, Sendable {
  /// The clock floor, in Unix seconds.
  public var clockFloor: UInt64
  /// The highest generation that was accepted from this verifying key.
  public var generationFloor: UInt64
  /// The highest clock floor that the owner has moved back, in Unix seconds; 0 if there is none. The store may have
  /// dropped the records of tokens that had expired by then.
  package var forgottenThrough: UInt64 = 0
  /// The count of the rounds that were accepted with this token; nil if there is no record of it.
  public var uses: UseRecord?
  /// Whether the store has a record of this nonce with this token.
  public var isNonceUsed: Bool
  /// The number of nonces of this token that the store keeps.
  package var nonceCount = 0
  /// The room for use counts and nonces.
  package var replayRoom: ReplayRoom
  /// Whether the issuer is still trusted, as it was when the token was checked.
  public var isIssuerTrusted: Bool
  /// The record of the round's ``AppraisalInput/codeUser``; nil for an unknown user.
  public var user: UserRecord?
  /// The request numbers that were accepted with this token; nil if there is no record of them.
  public var request: RequestRecord?
  /// Whether the device is carrying out the request with this round's number at this moment.
  public var isActing = false
  /// Whether there is a place for the request numbers of one more token.
  package var hasRequestRoom = true
  /// Whether a bulletin has revoked the token.
  public var isRevoked = false
  #if !hasFeature(Embedded)
  /// The least version of the token's app, according to bulletins.
  public var minimumVersion = AppVersion.zero
  /// Whether the verifying key signs bulletins: a key for MACs does not.
  package var hasBulletins = false
  #endif
  /// Whether the audit log has no room for an accepted round, because its home has not acknowledged its entries.
  package var isAuditLogFull = false
  private let pin = Pinned()

  /// Creates a snapshot; by default, nothing was used before, there is room, and the issuer is trusted.
  public init(
    clockFloor: UInt64, generationFloor: UInt64 = 0, uses: UseRecord? = nil, isNonceUsed: Bool = false,
    replayRoom: ReplayRoom = ReplayRoom(recordCount: 0, capacity: 64, nonceQuota: 8), isIssuerTrusted: Bool = true,
    user: UserRecord? = nil
  ) {
    self.clockFloor = clockFloor
    self.generationFloor = generationFloor
    self.uses = uses
    self.isNonceUsed = isNonceUsed
    self.replayRoom = replayRoom
    self.isIssuerTrusted = isIssuerTrusted
    self.user = user
  }
}

/// The number of rounds that were accepted with one token that has `max`.
public struct UseRecord: Sendable, Equatable {
  /// The number of accepted rounds, at most 2^53 - 1.
  public let count: UInt64
  /// The latest `exp` with which the token came, in Unix seconds. Until then, the store keeps the record.
  public let expires: UInt64

  /// Creates a record from the parts that a store kept.
  public init(count: UInt64, expires: UInt64) {
    (self.count, self.expires) = (count, expires)
  }
}

/// The room that a store has for use counts and nonces, which share one table.
public struct ReplayRoom: Sendable, Equatable {
  /// The number of records in the table.
  package let recordCount: Int
  /// The most records that the table takes.
  package let capacity: Int
  /// The most nonces that are kept of one token.
  package let nonceQuota: Int

  /// Creates the facts about a table.
  public init(recordCount: Int, capacity: Int, nonceQuota: Int) {
    (self.recordCount, self.capacity, self.nonceQuota) = (recordCount, capacity, nonceQuota)
  }
}

extension AppraisalInput {
  @inline(never)
  package init<Rules: Policy & ~Copyable>(
    token: borrowing AuthenticatedToken, proofs: (integrity: ProofResult, device: ProofResult),
    request: borrowing Request,
    digest: FixedBytes<16>, policy: borrowing Rules, nonce: Nonce?, realClock: UInt64?,
    monotonicMilliseconds: UInt64
  ) {
    verifyingKey = token.verifyingKey
    tokenID = token.claims.tokenID
    subject = token.claims.subject
    issuedAt = token.claims.issuedAt
    expires = token.claims.expires
    generation = token.claims.generation
    maximumUses = token.claims.maximumUses
    version = token.claims.version
    integrity = proofs.integrity
    device = proofs.device
    command = request.command
    isCommandInToken = token.claims.allows(request.command)
    isCarriedOut = true
    let rule = policy.rule(for: request, of: token, realClock: realClock)
    factors = rule?.factors
    allowsCompatibility = rule?.allowsCompatibility ?? false
    limits = rule?.limits ?? policy.limits
    codes = request.givenFactors
    codeUser = request.codeUser(for: factors ?? []) ?? request.namedUser(under: Rules.self)
    isAnotherUsersCode = request.isAbout(
      anotherThan: token.claims.user ?? codeUser, under: Rules.self, needing: factors ?? [])
    matches = nil
    codeLimits = policy.codeLimits
    longestParameterLength = request.longestParameterLength
    compatibilityNonce = nonce
    requestNumber = nonce == nil ? request.number : nil
    requestDigest = digest
    self.realClock = realClock
    self.monotonicMilliseconds = monotonicMilliseconds
  }
}

extension Request {
  fileprivate var givenFactors: Factors {
    var codes: Factors = []
    for purpose in CodePurpose.given where self.codes[purpose] != nil { codes.insert(purpose.factor) }
    return codes
  }

  /// Returns the user whose code the command needs; that of the one-time password takes precedence.
  func codeUser(for factors: Factors) -> BoundedText<32>? {
    for purpose in CodePurpose.given where factors.contains(purpose.factor) {
      if let code = codes[purpose] { return code.user }
    }
    return nil
  }

  /// The length of the longest parameter, in Unicode scalars.
  fileprivate var longestParameterLength: Int {
    var longest = 0
    for index in 0..<(parameterCount ?? 0) {
      let text = parameter(index)
      let bytes = text.bytes
      var length = 0
      for position in bytes.indices where bytes[position] & 0xc0 != 0x80 { length += 1 }
      longest = max(longest, length)
    }
    return longest
  }

  /// Returns whether a code that the command needs, or the user that it names, is not of `user`; false without a user.
  func isAbout<Rules: Policy & ~Copyable>(
    anotherThan user: BoundedText<32>?, under policy: Rules.Type, needing factors: Factors
  ) -> Bool {
    guard let user else { return false }
    if let namedUser = namedUser(under: policy), namedUser != user { return true }
    for purpose in CodePurpose.given where factors.contains(purpose.factor) {
      if let code = codes[purpose], code.user != user { return true }
    }
    return false
  }
}
