extension Decision {
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
