/// The rules that a round must keep, in their order.
///
/// Source: docs/protocol.md, Statuses, from tokenRevoked on.
extension Decision {
  /// Judges a round against the contents of the store. The first rule that objects gives the status.
  public mutating func decide(_ round: borrowing AppraisalInput, against ledger: borrowing LedgerSnapshot) {
    self = Decision(status: .tokenInvalid, clockFloor: ledger.clockFloor)
    guard ledger.isIssuerTrusted else { return }
    let isSigned = round.verifyingKey != nil
    if isSigned && round.provesDevice { clockFloor = max(ledger.clockFloor, round.issuedAt) }
    let now = max(ledger.clockFloor, round.realClock ?? 0)
    status = .accepted
    if let denial = Self.checkRevocation(round, ledger) ?? Self.checkExpiry(round, now: now)
      ?? Self.checkVersion(round, ledger)
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
      countUse(round, ledger)
      generationFloor = isSigned ? max(ledger.generationFloor, round.generation) : nil
      keepNumber(round, ledger)
    }
  }

  /// Denies a token that a bulletin revoked, or below the generation floor, which its issuer or the policy revoked.
  static func checkRevocation(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    guard !ledger.isRevoked else { return Denial(status: .tokenRevoked) }
    let floor = max(round.limits.generationFloor, round.verifyingKey == nil ? 0 : ledger.generationFloor)
    guard round.generation < floor else { return nil }
    var denial = Denial(status: .tokenRevoked)
    denial.notice.generationFloor = floor
    return denial
  }

  /// Denies a token whose `exp` has passed, or that is older than policy allows, counted from its `iat`.
  static func checkExpiry(_ round: borrowing AppraisalInput, now: UInt64) -> Denial? {
    let age = now > round.issuedAt ? now - round.issuedAt : 0
    let isTooOld = round.limits.maximumAgeSeconds.map { age > $0 } ?? false
    guard round.expires <= now || isTooOld else { return nil }
    var denial = Denial(status: .tokenExpired)
    denial.notice.clock = now
    return denial
  }

  /// Denies an app that is older than the policy or a bulletin allows.
  static func checkVersion(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    var least = round.limits.minimumVersion
    #if !hasFeature(Embedded)
    least = max(least, ledger.minimumVersion)
    #endif
    return round.version < least ? Denial(status: .versionTooOld) : nil
  }

  /// Answers a request from the record, and prevents its execution, if its number was accepted before or lies below the
  /// window.
  static func checkNumber(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    guard let number = round.requestNumber, let record = ledger.request,
      record.covers(number, clockFloor: ledger.clockFloor)
    else { return nil }
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

  /// Denies a token with which `max` rounds were accepted. A token whose record may have been dropped counts as used up.
  static func checkUses(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    guard let maximum = round.maximumUses else { return nil }
    let count = ledger.uses?.count ?? (ledger.hasForgotten(round) ? maximumInteger : 0)
    guard count >= maximum else { return nil }
    return Denial(status: .usesExhausted)
  }

  /// Denies a wrong integrity proof, whether or not the command needs one.
  static func checkIntegrity(_ round: borrowing AppraisalInput) -> Denial? {
    round.integrity == .wrong ? Denial(status: .integrityMismatch) : nil
  }

  /// Denies a command that policy does not know or does not allow in a compatibility round, that the token does not
  /// allow, that concerns another user, or that no part of the device carries out. Denies a parameter under a seal that
  /// is too long for a person to read.
  static func checkCommand(_ round: borrowing AppraisalInput) -> Denial? {
    guard let factors = round.factors, round.compatibilityNonce == nil || round.allowsCompatibility else {
      return Denial(refusal: .notInPolicy)
    }
    guard round.isCommandInToken else { return Denial(refusal: .notInToken) }
    guard !round.isAnotherUsersCode else { return Denial(refusal: .anotherUser) }
    guard !factors.contains(.seal) || round.longestParameterLength <= round.codeLimits.sealParameterLength else {
      return Denial(refusal: .parameterTooLong)
    }
    return round.isCarriedOut ? nil : Denial(refusal: .unknownToActuator)
  }

  /// Denies a command if one of its factors is missing. Codes that the command does not need are not looked at.
  package static func checkFactors(_ round: borrowing AppraisalInput) -> Denial? {
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

  /// Uses up a compatibility nonce once its proof is right, and refuses it from then on.
  private mutating func checkNonce(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) {
    guard round.compatibilityNonce != nil else { return }
    if ledger.isNonceUsed || ledger.hasForgotten(round) {
      status = .deviceMismatch
    } else if round.expires <= ledger.clockFloor {
      // The token never counts again. The next round would drop its nonce, so the token's holder could cause writes
      // without end.
    } else if !ledger.hasNonceRoom {
      status = .busy
    } else {
      keepsNonce = true
    }
  }

  /// Answers busy if the store has no room for one more use or request number, and refuses the command if it must not be recorded.
  private mutating func checkRoom(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) {
    guard status == .accepted else { return }
    guard !ledger.isAuditLogFull else {
      (status, notice.refusal) = (.commandRefused, .auditLogFull)
      return
    }
    if round.maximumUses != nil, ledger.uses == nil, !ledger.hasUseRoom(round) { status = .busy }
    if round.requestNumber != nil, ledger.request == nil, !ledger.hasRequestRoom { status = .busy }
  }

  /// Answers busy while a pending challenge is young: its user may be about to answer it.
  @inline(never)
  mutating func checkChallenge(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot, now: UInt64) {
    guard status == .accepted, round.freshChallenge != nil, let pending = ledger.user?.challenge else { return }
    guard pending.isYoung(at: now) else { return }
    status = .busy
    notice.refusal = .challengePending
  }

  /// Checks a user's codes in two transactions: the attempt is first recorded as a failure, then the comparison's
  /// result is applied to the record as it is then.
  mutating func checkCodes(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot, now: UInt64) {
    let needed = (round.factors ?? []).intersection([.otp, .seal])
    guard status == .accepted, !needed.isEmpty else { return }
    status = (needed.contains(.otp) ? CodePurpose.otp : .seal).rejection
    user = ledger.user
    if let matches = round.matches {
      apply(matches, needed, now: now)
    } else {
      beginAttempt(round, needed, now: now)
    }
  }

  private mutating func beginAttempt(_ round: borrowing AppraisalInput, _ needed: Factors, now: UInt64) {
    guard var known = user.take() else { return }
    guard now >= known.lockedUntil else {
      status = .lockedOut
      notice.retryAfterSeconds = known.lockedUntil - now
      return
    }
    var attempt = CodeAttempt(challenge: nil)
    for purpose in CodePurpose.given where needed.contains(purpose.factor) {
      guard let account = known.accounts[purpose] else {
        status = purpose.rejection
        return
      }
      if account.needsChallenge(for: purpose) {
        // One challenge serves all codes of the round.
        guard let challenge = attempt.challenge ?? known.challenge, now < challenge.expires,
          round.isIssuedHere(challenge, for: account, purpose)
        else {
          status = purpose.rejection
          return
        }
        attempt = CodeAttempt(challenge: challenge)
        known.challenge = nil
      }
    }
    // This round's token may have moved the clock floor above `now`; the lockout then begins at that floor.
    known.countAttempt(with: needed, at: max(now, clockFloor))
    user = known
    self.attempt = attempt
  }

  private mutating func apply(_ matches: CodeMatches, _ needed: Factors, now: UInt64) {
    guard var known = user.take(), matches.userID == known.id else { return }
    var rejected: CodePurpose?
    for purpose in CodePurpose.given where needed.contains(purpose.factor) {
      if !known.useUp(purpose, matches.results[purpose], at: now), rejected == nil { rejected = purpose }
    }
    if let rejected {
      status = rejected.rejection
      if known.lockedUntil > now { notice.retryAfterSeconds = known.lockedUntil - now }
    } else {
      known.accept(needed)
      status = .accepted
    }
    user = known
  }
}

/// The changes that an accepted round makes.
extension Decision {
  /// Records the challenge in the round that asked for it. An unknown user gets none.
  @inline(never)
  mutating func keepChallenge(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot, now: UInt64) {
    guard let fresh = round.freshChallenge else { return }
    // For a Cortex-M4, Swift 6.3 would compare with nil by the code that compares whole records.
    if case .none = user { user = ledger.user }
    let expires = min(max(now, clockFloor) + IssuedChallenge.lifetimeSeconds, maximumInteger)
    user?.challenge = IssuedChallenge(bytes: fresh, expires: expires)
  }

  /// Counts one use of a token that has `max`. The record of a token that comes again with a later `exp` is kept until the
  /// later time.
  mutating func countUse(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) {
    guard round.maximumUses != nil else { return }
    uses = UseRecord(
      count: (ledger.uses?.count ?? 0) + 1, expires: max(ledger.uses?.expires ?? 0, round.expires))
  }

  /// Records the number of a round that was accepted.
  mutating func keepNumber(_ round: borrowing AppraisalInput, _ ledger: borrowing LedgerSnapshot) {
    guard let number = round.requestNumber else { return }
    if let known = ledger.request, known.expires > ledger.clockFloor {
      request = known.accepting(number, digest: round.requestDigest, expires: round.expires)
    } else {
      request = RequestRecord(first: number, digest: round.requestDigest, expires: round.expires)
    }
  }
}

/// The store's capacity, and what it means for a round.
extension LedgerSnapshot {
  /// Whether the store may have dropped records of the round's token, because the owner has moved the clock floor back
  /// since.
  func hasForgotten(_ round: borrowing AppraisalInput) -> Bool { round.expires <= forgottenThrough }

  /// Whether there is room for one more use count. The nonce of the same round takes its place first.
  func hasUseRoom(_ round: borrowing AppraisalInput) -> Bool {
    freeRecordCount > (round.compatibilityNonce == nil ? 0 : 1)
  }

  /// Whether there is room for one more nonce.
  ///
  /// The holder of any token, even of a revoked one, can create nonces at will. So nonces take at most half of the places,
  /// which leaves the rest to use counts, and one token's nonces have a quota, which leaves places to other tokens.
  var hasNonceRoom: Bool { freeRecordCount > replayRoom.capacity / 2 && nonceCount < replayRoom.nonceQuota }

  private var freeRecordCount: Int { replayRoom.capacity - replayRoom.recordCount }
}

extension AppraisalInput {
  #if hasFeature(Embedded)
  /// Returns true: a microcontroller has no codes that are bound to a connection.
  func isIssuedHere(_ challenge: IssuedChallenge, for account: CodeAccount, _ purpose: CodePurpose) -> Bool { true }
  #else
  /// Returns whether a challenge was issued on this connection, if codes of the account are good only there.
  func isIssuedHere(_ challenge: IssuedChallenge, for account: CodeAccount, _ purpose: CodePurpose) -> Bool {
    !account.isBoundToConnection(for: purpose) || challenge.bytes == connectionChallenge
  }
  #endif

  /// Whether the peer has proved the token's device measurement (DM). In a session round, it proved DM before the round
  /// is judged.
  var provesDevice: Bool {
    compatibilityNonce == nil || device == .right
  }
}

extension IssuedChallenge {
  /// The time during which a challenge cannot be replaced, in seconds.
  static var protectedSeconds: UInt64 { 60 }

  /// Returns whether the challenge was issued less than a minute before `now`, in Unix seconds. A challenge from the
  /// future was issued by a wrong clock, and is not protected.
  func isYoung(at now: UInt64) -> Bool {
    let left = expires - min(now, expires)
    return left > Self.lifetimeSeconds - Self.protectedSeconds && left <= Self.lifetimeSeconds
  }
}
