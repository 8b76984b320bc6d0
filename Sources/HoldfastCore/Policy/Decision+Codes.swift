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
