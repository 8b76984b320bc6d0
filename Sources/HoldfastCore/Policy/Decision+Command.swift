extension Decision {
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
}
