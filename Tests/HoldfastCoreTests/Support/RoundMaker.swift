@testable import HoldfastCore

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
  var realClock: UInt64? = 2000
  var ledger = LedgerSnapshot(clockFloor: 1500, generationFloor: 3)

  var round: Round {
    Round(
      verifyingKey: isSigned ? KeyID() : nil, tokenID: TokenID(), subject: "app", issuedAt: issuedAt, expires: expires,
      generation: generation, maximumUses: maximumUses, version: version, integrity: integrity, device: device,
      command: "unlock", isCommandInToken: isCommandInToken,
      rule: factors.map { CommandRule(factors: $0, limits: limits, allowsCompatibility: allowsCompatibility) },
      limits: limits, codes: codes, isAnotherUsersCode: isAnotherUsersCode, codeUser: codeUser, matches: matches,
      codeLimits: codeLimits, longestParameterLength: longestParameterLength, compatibilityNonce: nonce,
      realClock: realClock)
  }

  var decision: Decision { Decision.judge(round, against: ledger) }
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
