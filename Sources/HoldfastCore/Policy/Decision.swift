/// A verdict with one reason, and the changes that the store must make durable before the verdict counts.
public struct Decision: ~Copyable, Sendable {
  /// The status of the verdict.
  public var status: Status
  /// The details that the prover receives in addition to the status.
  public var notice = Notice()
  /// The new clock floor, in Unix seconds.
  public var clockFloor: UInt64
  /// The new generation floor of the verifying key; nil to leave the floor as it is.
  public var generationFloor: UInt64?
  /// The new record of the token's uses; nil to leave the record as it is.
  package var uses: UseRecord?
  /// Whether the store must record the compatibility nonce, until the token's `exp`.
  public var keepsNonce = false
  /// The token's new record of request numbers; nil to leave the record as it is.
  public var request: RequestRecord?
  /// The new record of the round's user; nil to leave the record as it is.
  public var user: UserRecord?
  /// The attempt whose codes must be compared with those of ``user``, after which the round is judged again. Until
  /// then, the round is denied.
  public var attempt: CodeAttempt?
  /// The number of the round's entry in the audit log, which the store sets; 0 if there is no entry.
  public var auditSequence: UInt64 = 0
  private let pin = Pinned()

  /// Creates a decision. `clockFloor` is in Unix seconds.
  public init(status: Status, clockFloor: UInt64, generationFloor: UInt64? = nil) {
    (self.status, self.clockFloor, self.generationFloor) = (status, clockFloor, generationFloor)
  }

  /// Creates a denial, for the time before a round is judged.
  public init() {
    self.init(status: .internal, clockFloor: 0)
  }
}

/// An attempt with codes, which is recorded as a failure until the codes are compared.
public struct CodeAttempt: Sendable, Equatable {
  /// The challenge that the password and the seal must cover where their suites need one. The attempt uses it up.
  public let challenge: IssuedChallenge?
}

/// The optional parts of a sealed M3.
public struct Notice: Sendable, Equatable {
  /// The device's time, in Unix seconds.
  public var clock: UInt64?
  /// The least generation that the device accepts.
  public var generationFloor: UInt64?
  /// The seconds until the device looks at codes again.
  public var retryAfterSeconds: UInt64?
  /// The factors that the command needs and that were not given.
  public var missingFactors: Factors?
  /// The highest request number that was accepted with the token; present only in the answer to a repetition.
  public var highestRequestNumber: UInt64?
  /// The reason why the command was refused. M3 carries it in its result.
  public var refusal: Refusal?
  /// The state of the device's ``BulletinList`` for the key that signed the token, 8 bytes; present only after an accepted round whose
  /// request had a number, from a device that takes bulletins. A store with bulletins sets it.
  public var bulletinState: BulletinState?
  /// Whether the device gives pages of its audit log to provers that carry them home.
  public var hasAuditPage = false

  /// Creates a notice without any part.
  public init() {}

  /// Whether the command was refused only because the audit log is full. Its prover may carry the log home.
  package var isAuditLogFull: Bool {
    // The optional is unwrapped first: for a Cortex-M4, Swift 6.3 miscompiles `==` with an optional.
    guard let refusal else { return false }
    return refusal == .auditLogFull
  }
}

extension Decision {
  /// Whether the round repeats an earlier one. ``status`` is then the outcome of the earlier round as far as it is
  /// known, and the device must neither act nor write anything.
  public var isRepetition: Bool { notice.highestRequestNumber != nil }

  /// Whether the actuator may have to act, once the codes are compared, so that it needs a place.
  package var mayAct: Bool { (status == .accepted && !isRepetition) || attempt != nil }

  /// Turns the decision into `busy`, because the actuator has no place. Nothing of it is recorded except a compatibility
  /// nonce: otherwise a copy of the message could be accepted later.
  package mutating func refuseForLackOfPlace(over ledger: borrowing LedgerSnapshot) {
    let keepsNonce = keepsNonce
    self = Decision(status: .busy, clockFloor: ledger.clockFloor)
    self.keepsNonce = keepsNonce
  }

  /// Returns whether anything must be made durable: an acceptance, a floor that rises, a code that was looked at, a
  /// nonce.
  ///
  /// Any other denial is only counted (by `DeniedRounds`), so that the holder of a useless token can neither fill a
  /// log nor wear out a flash. `ledger` is the snapshot from which the decision was made.
  public borrowing func isRecorded(over ledger: borrowing LedgerSnapshot, _ round: borrowing AppraisalInput) -> Bool {
    guard !isRepetition else { return false }
    return status == .accepted || clockFloor > ledger.clockFloor || keepsNonce || attempt != nil || round.matches != nil
  }
}

/// The objection of a rule.
package struct Denial {
  package var status: Status
  var notice = Notice()

  init(status: Status) {
    self.status = status
  }

  /// Creates a denial with `commandRefused` and its reason.
  init(refusal: Refusal) {
    status = .commandRefused
    notice.refusal = refusal
  }
}
