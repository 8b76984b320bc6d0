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

extension Decision {
  /// A token below the generation floor was revoked by its issuer or by policy.
  static func checkRevocation(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    let floor = max(round.limits.generationFloor, round.verifyingKey == nil ? 0 : ledger.generationFloor)
    guard round.generation < floor else { return nil }
    var denial = Denial(status: .tokenRevoked)
    denial.notice.generationFloor = floor
    return denial
  }

  /// A token counts until its `exp`, and no longer after its `iat` than policy says.
  static func checkExpiry(_ round: borrowing Round, now: UInt64) -> Denial? {
    let age = now > round.issuedAt ? now - round.issuedAt : 0
    let isTooOld = round.limits.maximumAgeSeconds.map { age > $0 } ?? false
    guard round.expires <= now || isTooOld else { return nil }
    var denial = Denial(status: .tokenExpired)
    denial.notice.clock = now
    return denial
  }

  /// The app must be at least as new as policy asks.
  static func checkVersion(_ round: borrowing Round) -> Denial? {
    round.version < round.limits.minimumVersion ? Denial(status: .versionTooOld) : nil
  }
}

/// The request numbers that a device accepted with one token: the highest, and which of the 64 below it.
///
/// A request whose number was accepted before, or lies below the window, is never carried out again.
/// Source: RFC 4303 §3.4.3, the anti-replay window of IPsec.
public struct RequestRecord: Sendable, Equatable {
  /// How many numbers below the highest one the window covers.
  public static var windowLength: UInt64 { 64 }

  /// The highest number that was accepted, at most 2^53 - 1.
  public let highest: UInt64
  /// The numbers below ``highest``: bit n is set if `highest - 1 - n` was accepted.
  public let window: UInt64
  /// Identifies the command and the parameters of the request with the highest number: see ``Round/requestDigest``.
  public let digest: FixedBytes<16>
  /// `accepted` if the actuator carried that request out, `internal` if it failed; nil as long as neither is known.
  public var outcome: Status?

  /// A record that a store kept.
  public init(highest: UInt64, window: UInt64, digest: FixedBytes<16>, outcome: Status?) {
    (self.highest, self.window, self.digest, self.outcome) = (highest, window, digest, outcome)
  }

  /// The record of a token's first request that has a number.
  init(first number: UInt64, digest: FixedBytes<16>) {
    self.init(highest: number, window: 0, digest: digest, outcome: nil)
  }

  /// Whether `number` was accepted before, or lies below the window.
  public func covers(_ number: UInt64) -> Bool {
    guard number <= highest else { return false }
    let distance = highest - number
    guard distance > 0 else { return true }
    return distance > Self.windowLength || window >> (distance - 1) & 1 == 1
  }

  /// The record once `number`, which it does not cover, was accepted.
  func accepting(_ number: UInt64, digest: FixedBytes<16>) -> RequestRecord {
    guard number > highest else {
      return RequestRecord(
        highest: highest, window: window | 1 << (highest - number - 1), digest: self.digest, outcome: outcome)
    }
    let distance = number - highest
    // Shifts by 64 and more give 0.
    return RequestRecord(
      highest: number, window: window << distance | 1 << (distance - 1), digest: digest, outcome: nil)
  }
}

extension Decision {
  /// A request whose number was accepted before, or is too old to tell, is answered from the record and not carried out.
  static func checkNumber(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    guard let number = round.requestNumber, let record = ledger.request, record.covers(number) else { return nil }
    var denial = Denial(status: .internal)
    denial.notice.highestRequestNumber = record.highest
    if number == record.highest, record.digest != round.requestDigest {
      denial.status = .commandRefused
      denial.notice.refusal = .anotherCommand
    } else if ledger.isActing {
      denial.status = .busy
    } else if number == record.highest, let outcome = record.outcome {
      denial.status = outcome
    }
    return denial
  }

  /// Records the number of a round that was accepted.
  mutating func keepNumber(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) {
    guard let number = round.requestNumber else { return }
    request =
      ledger.request?.accepting(number, digest: round.requestDigest)
      ?? RequestRecord(first: number, digest: round.requestDigest)
  }
}

/// Identifies a numbered request: the token that it came with, and its number.
public struct RequestIdentity: Sendable, Hashable {
  /// The key that signed or authenticated the token; nil for an unsigned one.
  public let verifyingKey: KeyID?
  public let tokenID: TokenID
  public let number: UInt64

  init(_ token: borrowing VerifiedToken, number: UInt64) {
    (verifyingKey, tokenID, self.number) = (token.verifyingKey, token.claims.tokenID, number)
  }

  /// The request of `round`; nil for one without a number.
  public init?(_ round: borrowing Round) {
    guard let number = round.requestNumber else { return nil }
    (verifyingKey, tokenID, self.number) = (round.verifyingKey, round.tokenID, number)
  }
}

extension Decision {
  /// A token with `max` is good for that many accepted rounds.
  static func checkUses(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    guard let maximum = round.maximumUses, ledger.uses >= maximum else { return nil }
    return Denial(status: .usesExhausted)
  }

  /// An integrity proof that is given must be right, whether or not the command needs it.
  static func checkIntegrity(_ round: borrowing Round) -> Denial? {
    round.integrity == .wrong ? Denial(status: .integrityMismatch) : nil
  }

  /// Policy must know the command, the token must allow it to this user, and policy a compatibility round. Parameters under a
  /// seal are short enough to be read.
  static func checkCommand(_ round: borrowing Round) -> Denial? {
    guard let factors = round.factors, round.compatibilityNonce == nil || round.allowsCompatibility else {
      return Denial(refusal: .notInPolicy)
    }
    guard round.isCommandInToken else { return Denial(refusal: .notInToken) }
    guard !round.isAnotherUsersCode else { return Denial(refusal: .anotherUser) }
    guard !factors.contains(.seal) || round.longestParameterLength <= round.codeLimits.sealParameterLength else {
      return Denial(refusal: .parameterTooLong)
    }
    return nil
  }

  /// Every factor that the command needs must be there; codes that it does not need are not looked at.
  static func checkFactors(_ round: borrowing Round) -> Denial? {
    guard let factors = round.factors else { return Denial(refusal: .notInPolicy) }
    var given = round.codes
    if round.integrity == .right { given.insert(.integrity) }
    if round.device == .right { given.insert(.device) }
    let missing = factors.subtracting(given)
    guard missing.isEmpty else {
      var denial = Denial(status: .factorMissing)
      denial.notice.missingFactors = missing
      return denial
    }
    return nil
  }
}

/// The challenge that `host-code` gives to a user.
extension Decision {
  /// A challenge that is pending is not replaced while it is young: the user may be about to answer it.
  @inline(never)
  mutating func checkChallenge(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot, now: UInt64) {
    guard status == .accepted, round.freshChallenge != nil, let pending = ledger.user?.challenge else { return }
    guard pending.isYoung(at: now) else { return }
    status = .busy
    notice.refusal = .challengePending
  }

  /// Notes the challenge with the round that asked for it; a user who is not known gets none.
  @inline(never)
  mutating func keepChallenge(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot, now: UInt64) {
    guard let fresh = round.freshChallenge else { return }
    if user == nil { user = ledger.user }
    let expires = min(max(now, clockFloor) + IssuedChallenge.lifetimeSeconds, maximumInteger)
    user?.challenge = IssuedChallenge(bytes: fresh, expires: expires)
  }
}

extension IssuedChallenge {
  /// How long it cannot be replaced, in seconds.
  static var protectedSeconds: UInt64 { 60 }

  /// Whether it was issued less than a minute before `now`, in Unix seconds. One of the future was issued by a clock that was
  /// wrong, and protects nothing.
  func isYoung(at now: UInt64) -> Bool {
    let left = expires - min(now, expires)
    return left > Self.lifetimeSeconds - Self.protectedSeconds && left <= Self.lifetimeSeconds
  }
}

extension Decision {
  /// A user's codes, in two steps: what they are compared with is recorded as a failure first; what comparing gave is judged
  /// against the record as it is then.
  mutating func checkCodes(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot, now: UInt64) {
    let needed = (round.factors ?? []).intersection([.otp, .seal])
    guard status == .accepted, !needed.isEmpty else { return }
    status = needed.contains(.otp) ? .otpRejected : .sealRejected
    user = ledger.user
    if let matches = round.matches {
      conclude(matches, needed, now: now)
    } else {
      begin(needed, now: now)
    }
  }

  private mutating func begin(_ needed: Factors, now: UInt64) {
    guard var known = user.take() else { return }
    guard now >= known.lockedUntil else {
      status = .lockedOut
      notice.retryAfterSeconds = known.lockedUntil - now
      return
    }
    if needed.contains(.otp), known.otp == nil { return }
    var attempt = CodeAttempt(challenge: nil)
    if needed.contains(.seal) {
      guard let seal = known.seal else {
        status = .sealRejected
        return
      }
      if seal.needsChallenge {
        guard let challenge = known.challenge, now < challenge.expires else {
          status = .sealRejected
          return
        }
        attempt = CodeAttempt(challenge: challenge)
        known.challenge = nil
      }
    }
    // A lockout begins at the time that this round's token brings.
    known.countAttempt(with: needed, at: max(now, clockFloor))
    user = known
    self.attempt = attempt
  }

  private mutating func conclude(_ matches: CodeMatches, _ needed: Factors, now: UInt64) {
    guard var known = user.take(), matches.userID == known.id else { return }
    let hasPassword = !needed.contains(.otp) || known.useUp(.otp, matches.otp, at: now)
    let hasSeal = !needed.contains(.seal) || known.useUp(.seal, matches.seal, at: now)
    if hasPassword && hasSeal {
      known.accept(needed)
      status = .accepted
    } else {
      status = hasPassword ? .sealRejected : .otpRejected
      if known.lockedUntil > now { notice.retryAfterSeconds = known.lockedUntil - now }
    }
    user = known
  }
}
