extension Decision {
  /// A token with `max` is good for that many accepted rounds.
  static func checkUses(_ round: borrowing Round, _ ledger: borrowing LedgerSnapshot) -> Denial? {
    guard let maximum = round.maximumUses, ledger.uses >= maximum else { return nil }
    return Denial(status: .usesExhausted)
  }
}
