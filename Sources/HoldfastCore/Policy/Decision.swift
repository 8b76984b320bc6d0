/// One verdict with one reason, and what the store must make durable before it counts.
public struct Decision: Sendable, Equatable {
  public var status: Status
  /// What the prover is told beside the status.
  public var notice = Notice()
  /// The clock floor from now on.
  public var clockFloor: UInt64
  /// The generation floor of the verifying key from now on; nil to leave it.
  public var generationFloor: UInt64?
  /// Whether one use is to be counted.
  public var countsUse = false
  /// Whether the compatibility nonce is to be kept.
  public var keepsNonce = false
  /// What is kept of the round's user from now on; nil to leave it.
  public var user: UserRecord?
  /// The user as codes are to be compared with; the round is then judged once more. Until then it is denied.
  public var attempt: UserRecord?
}

/// The optional parts of a sealed M3.
public struct Notice: Sendable, Equatable {
  /// The device's time, in Unix seconds.
  public var clock: UInt64?
  public var generationFloor: UInt64?
  public var retryAfterSeconds: UInt64?
  public var missingFactors: Factors?

  public init() {}
}

extension Decision {
  /// Judges a round against what the store holds: the first rule that objects gives the status.
  ///
  /// The rules and their order are DESIGN §5's, from tokenRevoked on.
  public static func judge(_ round: Round, against ledger: LedgerSnapshot) -> Decision {
    guard ledger.isIssuerTrusted else { return Decision(status: .tokenInvalid, clockFloor: ledger.clockFloor) }
    let isSigned = round.verifyingKey != nil
    let floor = isSigned && round.provesDevice ? max(ledger.clockFloor, round.issuedAt) : ledger.clockFloor
    let now = max(ledger.clockFloor, round.realClock ?? 0)
    var decision = Decision(status: .accepted, clockFloor: floor)
    if let denial = checkRevocation(round, ledger) ?? checkExpiry(round, now: now) ?? checkVersion(round)
      ?? checkUses(round, ledger) ?? checkIntegrity(round) ?? checkCommand(round) ?? checkFactors(round)
    {
      (decision.status, decision.notice) = (denial.status, denial.notice)
    }
    checkNonce(round, ledger, &decision)
    checkRoom(round, ledger, &decision)
    checkCodes(round, ledger, now: now, &decision)
    if decision.status == .accepted {
      decision.countsUse = round.maximumUses != nil
      decision.generationFloor = isSigned ? max(ledger.generationFloor, round.generation) : nil
    }
    return decision
  }

  /// A compatibility nonce is used up once its proof is right, and refused from then on.
  private static func checkNonce(_ round: Round, _ ledger: LedgerSnapshot, _ decision: inout Decision) {
    guard round.compatibilityNonce != nil else { return }
    if ledger.isNonceUsed {
      decision.status = .deviceMismatch
    } else if !ledger.canKeepNonce {
      decision.status = .busy
    } else {
      decision.keepsNonce = true
    }
  }

  private static func checkRoom(_ round: Round, _ ledger: LedgerSnapshot, _ decision: inout Decision) {
    guard decision.status == .accepted, round.maximumUses != nil, !ledger.canCountUses else { return }
    decision.status = .busy
  }
}

extension Round {
  /// Whether the peer has proved the token's device measurement: in a session round `sealed` opened with it.
  var provesDevice: Bool {
    compatibilityNonce == nil || device == .right
  }
}

/// Why a rule objects.
struct Denial {
  let status: Status
  var notice = Notice()
}
