extension Decision {
  /// A token below the generation floor was revoked by its issuer or by policy.
  static func checkRevocation(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    let floor = max(round.limits.generationFloor, round.verifyingKey == nil ? 0 : ledger.generationFloor)
    guard round.generation < floor else { return nil }
    var denial = Denial(status: .tokenRevoked)
    denial.notice.generationFloor = floor
    return denial
  }
}
