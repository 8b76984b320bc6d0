extension Decision {
  /// Policy must know the command, the token must allow it to this user, and policy a compatibility round. Parameters under a
  /// seal are short enough to be read.
  static func checkCommand(_ round: Round) -> Denial? {
    guard let rule = round.rule, round.isCommandInToken, !round.isAnotherUsersCode,
      round.compatibilityNonce == nil || rule.allowsCompatibility
    else { return Denial(status: .commandRefused) }
    guard !rule.factors.contains(.seal) || round.longestParameterLength <= round.codeLimits.sealParameterLength else {
      return Denial(status: .commandRefused)
    }
    return nil
  }
}
