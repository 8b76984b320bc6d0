extension Decision {
  /// A token counts until its `exp`, and no longer after its `iat` than policy says.
  static func checkExpiry(_ round: borrowing Round, now: UInt64) -> Denial? {
    let age = now > round.issuedAt ? now - round.issuedAt : 0
    let isTooOld = round.limits.maximumAgeSeconds.map { age > $0 } ?? false
    guard round.expires <= now || isTooOld else { return nil }
    var denial = Denial(status: .tokenExpired)
    denial.notice.clock = now
    return denial
  }
}
