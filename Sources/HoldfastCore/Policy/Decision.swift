/// One verdict with one reason, and what the store must make durable before it counts.
public struct Decision: ~Copyable, Sendable {
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
  /// The request numbers to be kept of the token from now on; nil to leave them.
  public var request: RequestRecord?
  /// What is kept of the round's user from now on; nil to leave it.
  public var user: UserRecord?
  /// What codes are to be compared with beside ``user``; the round is then judged once more. Until then it is denied.
  public var attempt: CodeAttempt?
  private let pin = Pinned()

  public init(status: Status, clockFloor: UInt64, generationFloor: UInt64? = nil) {
    (self.status, self.clockFloor, self.generationFloor) = (status, clockFloor, generationFloor)
  }

  /// A denial, until a round was judged.
  public init() {
    self.init(status: .internal, clockFloor: 0)
  }
}

/// An attempt with codes that is recorded as a failure until they were compared.
public struct CodeAttempt: Sendable, Equatable {
  /// What the seal has to be over, where its suite wants one; it is used up.
  public let challenge: IssuedChallenge?
}

/// The optional parts of a sealed M3.
public struct Notice: Sendable, Equatable {
  /// The device's time, in Unix seconds.
  public var clock: UInt64?
  public var generationFloor: UInt64?
  public var retryAfterSeconds: UInt64?
  public var missingFactors: Factors?
  /// The highest request number that was accepted with the token: only in the answer to a repetition.
  public var highestRequestNumber: UInt64?
  /// Why the command was refused: not a member of M3, but its result.
  public var refusal: Refusal?

  public init() {}
}

extension Decision {
  /// Whether the round repeats an earlier one. ``status`` is then the outcome of that one as far as it is known: the device
  /// must neither act nor write anything.
  public var isRepetition: Bool { notice.highestRequestNumber != nil }

  /// Judges a round against what the store holds: the first rule that objects gives the status.
  ///
  /// The rules and their order are those of docs/protocol.md, Statuses, from tokenRevoked on.
  public mutating func judge(_ round: borrowing Round, against ledger: borrowing LedgerSnapshot) {
    self = Decision(status: .tokenInvalid, clockFloor: ledger.clockFloor)
    guard ledger.isIssuerTrusted else { return }
    let isSigned = round.verifyingKey != nil
    if isSigned && round.provesDevice { clockFloor = max(ledger.clockFloor, round.issuedAt) }
    let now = max(ledger.clockFloor, round.realClock ?? 0)
    status = .accepted
    if let denial = Self.checkRevocation(round, ledger) ?? Self.checkExpiry(round, now: now) ?? Self.checkVersion(round)
      ?? Self.checkNumber(round, ledger) ?? Self.checkUses(round, ledger) ?? Self.checkIntegrity(round)
      ?? Self.checkCommand(round) ?? Self.checkFactors(round)
    {
      (status, notice) = (denial.status, denial.notice)
    }
    if isRepetition {
      clockFloor = ledger.clockFloor
      return
    }
    checkNonce(round, ledger)
    checkRoom(round, ledger)
    checkChallenge(round, ledger, now: now)
    checkCodes(round, ledger, now: now)
    if status == .accepted {
      keepChallenge(round, ledger, now: now)
      countsUse = round.maximumUses != nil
      generationFloor = isSigned ? max(ledger.generationFloor, round.generation) : nil
      keepNumber(round, ledger)
    }
  }

  /// A compatibility nonce is used up once its proof is right, and refused from then on.
  private mutating func checkNonce(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) {
    guard round.compatibilityNonce != nil else { return }
    if ledger.isNonceUsed {
      status = .deviceMismatch
    } else if round.expires <= ledger.clockFloor {
      // Its token never counts again. The nonce would be dropped in the next round, and the token's holder could write for ever.
    } else if !ledger.canKeepNonce {
      status = .busy
    } else {
      keepsNonce = true
    }
  }

  private mutating func checkRoom(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) {
    guard status == .accepted else { return }
    if round.maximumUses != nil, !ledger.canCountUses { status = .busy }
    if round.requestNumber != nil, !ledger.canKeepRequest { status = .busy }
  }
}

extension Decision {
  /// Whether anything has to be made durable: an acceptance, a floor that rises, a code that was looked at, a nonce.
  ///
  /// Any other denial is only counted (see ``DeniedRounds``), so that the holder of a token that is of no use can neither fill a
  /// log nor wear out a flash. `ledger` is what the decision was made from.
  public borrowing func isRecorded(over ledger: borrowing LedgerSnapshot, _ round: borrowing Round) -> Bool {
    guard !isRepetition else { return false }
    return status == .accepted || clockFloor > ledger.clockFloor || keepsNonce || attempt != nil || round.matches != nil
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
  var status: Status
  var notice = Notice()

  init(status: Status) {
    self.status = status
  }

  /// `commandRefused`, and why.
  init(refusal: Refusal) {
    status = .commandRefused
    notice.refusal = refusal
  }
}
