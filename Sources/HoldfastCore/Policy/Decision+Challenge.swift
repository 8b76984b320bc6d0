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
