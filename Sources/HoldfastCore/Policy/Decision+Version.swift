extension Decision {
  /// The app must be at least as new as policy asks.
  static func checkVersion(_ round: borrowing Round) -> Denial? {
    round.version < round.limits.minimumVersion ? Denial(status: .versionTooOld) : nil
  }
}
