/// Whether a proof was given, and was right.
public enum ProofResult: Sendable, Equatable {
  case right, wrong, absent
}

/// What one round is judged by, once its token was opened and its proofs were compared. It holds no secret.
public struct Round: ~Copyable, Sendable {
  /// The key that signed or authenticated the token; nil for an unsigned one.
  public let verifyingKey: KeyID?
  public let tokenID: TokenID
  public let subject: BoundedText<64>
  public let issuedAt: UInt64
  public let expires: UInt64
  public let generation: UInt64
  public let maximumUses: UInt64?
  public let version: AppVersion
  public let integrity: ProofResult
  public let device: ProofResult
  public let command: BoundedText<32>
  /// Whether the token's own list, where it has one, names the command.
  public let isCommandInToken: Bool
  /// What the command needs; nil for one that policy does not know.
  public let factors: Factors?
  /// Whether policy lets the command come in a compatibility round.
  public let allowsCompatibility: Bool
  /// The limits that apply to the token.
  public let limits: TokenLimits
  /// The factors that came as codes.
  public let codes: Factors
  /// Whether a code that the command needs, or the user whom `host-code` or `user-sync` names, is of another user than the
  /// token's `usr`, or than the other code.
  public let isAnotherUsersCode: Bool
  /// Whose codes the command needs, or whom `host-code` or `user-sync` names; nil where there is nobody.
  public let codeUser: BoundedText<32>?
  /// The challenge that `host-code` is to give to ``codeUser``; nil for any other command, and where its parameters are none.
  public var freshChallenge: FixedBytes<8>?
  /// What comparing them gave; nil as long as they were not compared.
  public var matches: CodeMatches?
  public let codeLimits: CodeLimits
  /// The characters of the longest parameter.
  public let longestParameterLength: Int
  /// The nonce of a compatibility round; nil in a session round.
  public let compatibilityNonce: FixedBytes<16>?
  /// The number of the request, at most 2^53 - 1; nil for a request without one.
  public let requestNumber: UInt64?
  /// The first 16 bytes of ``commandDigest(command:parameterCount:parameter:using:)``; zero for a request without a number.
  public let requestDigest: FixedBytes<16>
  /// The real clock, in Unix seconds, where there is one.
  public let realClock: UInt64?
  /// The clock that only goes forward, in milliseconds.
  public let monotonicMilliseconds: UInt64
  let pin = Pinned()
}

/// What the device's store holds for one round, read in the transaction that will record it.
public struct LedgerSnapshot: ~Copyable, Sendable {
  /// Unix seconds.
  public var clockFloor: UInt64
  /// The highest generation that was accepted from this verifying key.
  public var generationFloor: UInt64
  /// How many rounds this token was accepted in.
  public var uses: UInt64
  /// Whether this token's uses can be counted: they are already, or there is room.
  public var canCountUses: Bool
  /// Whether this nonce was used before with this token.
  public var isNonceUsed: Bool
  /// Whether there is room for one more nonce.
  public var canKeepNonce: Bool
  /// Whether the issuer is trusted, as it was when the token was looked at.
  public var isIssuerTrusted: Bool
  /// The round's ``Round/codeUser``; nil for one that is not known.
  public var user: UserRecord?
  /// The request numbers that were accepted with this token; nil where none is known.
  public var request: RequestRecord?
  /// Whether the request with this round's number is being carried out at this moment.
  public var isActing = false
  /// Whether this token's request numbers can be kept: they are already, or there is room.
  public var canKeepRequest = true
  private let pin = Pinned()

  public init(
    clockFloor: UInt64, generationFloor: UInt64 = 0, uses: UInt64 = 0, canCountUses: Bool = true,
    isNonceUsed: Bool = false, canKeepNonce: Bool = true, isIssuerTrusted: Bool = true,
    user: UserRecord? = nil
  ) {
    self.clockFloor = clockFloor
    self.generationFloor = generationFloor
    self.uses = uses
    self.canCountUses = canCountUses
    self.isNonceUsed = isNonceUsed
    self.canKeepNonce = canKeepNonce
    self.isIssuerTrusted = isIssuerTrusted
    self.user = user
  }
}
