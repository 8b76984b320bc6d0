extension Decision {
  /// A user's codes, in two steps: what they are compared with is recorded as a failure first; what comparing gave is judged
  /// against the record as it is then.
  static func checkCodes(_ round: Round, _ ledger: LedgerSnapshot, now: UInt64, _ decision: inout Decision) {
    let needed = (round.rule?.factors ?? []).intersection([.otp, .seal])
    guard decision.status == .accepted, !needed.isEmpty else { return }
    decision.status = needed.contains(.otp) ? .otpRejected : .sealRejected
    guard let user = ledger.user else { return }
    if let matches = round.matches {
      conclude(matches, needed, user, now: now, &decision)
    } else {
      begin(needed, user, now: now, &decision)
    }
  }

  private static func begin(_ needed: Factors, _ user: UserRecord, now: UInt64, _ decision: inout Decision) {
    guard now >= user.lockedUntil else {
      decision.status = .lockedOut
      decision.notice.retryAfterSeconds = user.lockedUntil - now
      return
    }
    if needed.contains(.otp), user.otp == nil { return }
    decision.attempt = user
    var recorded = user
    if needed.contains(.seal) {
      let isAnswerable = user.challenge.map { now < $0.expires } ?? false
      guard let seal = user.seal, !seal.needsChallenge || isAnswerable else {
        decision.attempt = nil
        decision.status = .sealRejected
        return
      }
      if seal.needsChallenge { recorded.challenge = nil }
    }
    recorded.countAttempt(with: needed, at: now)
    decision.user = recorded
  }

  private static func conclude(
    _ matches: CodeMatches, _ needed: Factors, _ user: UserRecord, now: UInt64, _ decision: inout Decision
  ) {
    guard matches.userID == user.id else { return }
    var user = user
    let hasPassword = !needed.contains(.otp) || user.useUp(.otp, matches.otp, at: now)
    let hasSeal = !needed.contains(.seal) || user.useUp(.seal, matches.seal, at: now)
    if hasPassword && hasSeal {
      user.accept(needed)
      decision.status = .accepted
    } else {
      decision.status = hasPassword ? .sealRejected : .otpRejected
      if user.lockedUntil > now { decision.notice.retryAfterSeconds = user.lockedUntil - now }
    }
    decision.user = user
  }
}
