import HoldfastCore

/// Makes rounds for the policy's rules, at first one that is accepted, and judges them.
struct RoundMaker {
  var isSigned = true
  var issuedAt: UInt64 = 1000
  var expires: UInt64 = 9000
  var generation: UInt64 = 3
  var maximumUses: UInt64?
  var version = AppVersion(major: 1, minor: 2, patch: 3)
  var integrity = ProofResult.right
  var device = ProofResult.right
  var isCommandInToken = true
  var factors: Factors? = [.integrity, .device]
  var allowsCompatibility = false
  var limits = TokenLimits()
  var codes: Factors = []
  var isAnotherUsersCode = false
  var codeUser: BoundedText<32>?
  var matches: CodeMatches?
  var codeLimits = CodeLimits()
  var longestParameterLength = 0
  var nonce: FixedBytes<16>?
  var requestNumber: UInt64?
  var requestDigest = FixedBytes<16>()
  var realClock: UInt64? = 2000
  var ledger = Ledger()

  /// What a ``LedgerSnapshot`` is made from.
  struct Ledger {
    var clockFloor: UInt64 = 1500
    var generationFloor: UInt64 = 3
    var uses: UseRecord?
    var isNonceUsed = false
    var nonceCount = 0
    var forgottenThrough: UInt64 = 0
    var replayRoom = ReplayRoom(recordCount: 0, capacity: 8, nonceQuota: 2)
    var isIssuerTrusted = true
    var user: UserRecord?
    var request: RequestRecord?
    var isActing = false
    var hasRequestRoom = true

    var snapshot: LedgerSnapshot {
      var snapshot = LedgerSnapshot(
        clockFloor: clockFloor, generationFloor: generationFloor, uses: uses, isNonceUsed: isNonceUsed,
        replayRoom: replayRoom, isIssuerTrusted: isIssuerTrusted, user: user)
      (snapshot.request, snapshot.isActing, snapshot.hasRequestRoom) = (request, isActing, hasRequestRoom)
      (snapshot.nonceCount, snapshot.forgottenThrough) = (nonceCount, forgottenThrough)
      return snapshot
    }
  }

  var round: AppraisalInput {
    AppraisalInput(
      verifyingKey: isSigned ? KeyID() : nil, tokenID: TokenID(), subject: "app", issuedAt: issuedAt, expires: expires,
      generation: generation, maximumUses: maximumUses, version: version, integrity: integrity, device: device,
      command: "unlock", isCommandInToken: isCommandInToken,
      factors: factors, allowsCompatibility: allowsCompatibility, limits: limits, codes: codes,
      isAnotherUsersCode: isAnotherUsersCode, codeUser: codeUser, matches: matches,
      codeLimits: codeLimits, longestParameterLength: longestParameterLength, compatibilityNonce: nonce,
      requestNumber: requestNumber, requestDigest: requestDigest, realClock: realClock, monotonicMilliseconds: 0)
  }

  /// What a ``Decision`` says.
  struct Verdict {
    let status: Status
    let notice: Notice
    let clockFloor: UInt64
    let generationFloor: UInt64?
    let uses: UseRecord?
    let keepsNonce: Bool
    let request: RequestRecord?
    let isRepetition: Bool
    let attempt: CodeAttempt?
  }

  var decision: Verdict {
    var decision = Decision()
    decision.decide(round, against: ledger.snapshot)
    return Verdict(
      status: decision.status, notice: decision.notice, clockFloor: decision.clockFloor,
      generationFloor: decision.generationFloor, uses: decision.uses, keepsNonce: decision.keepsNonce,
      request: decision.request, isRepetition: decision.isRepetition, attempt: decision.attempt)
  }
  var status: Status { decision.status }

  /// The same round, changed.
  func with(_ change: (inout RoundMaker) -> Void) -> RoundMaker {
    var other = self
    change(&other)
    return other
  }

  /// A compatibility round that is accepted.
  static var compatibility: RoundMaker {
    RoundMaker(allowsCompatibility: true, nonce: FixedBytes())
  }
}
