extension Decision {
  /// An integrity proof that is given must be right, whether or not the command needs it.
  static func checkIntegrity(_ round: borrowing Round) -> Denial? {
    round.integrity == .wrong ? Denial(status: .integrityMismatch) : nil
  }
}
