extension CodeAccount {
  /// Where this account begins once it takes the place of `known`: where both make the same codes at the same positions, no
  /// code that was used up counts again.
  ///
  /// Takes the same time whatever secrets of these lengths are.
  ///
  /// - Parameters:
  ///   - secret: this account's.
  ///   - known: the account that the user has now.
  ///   - knownSecret: that one's.
  public mutating func carryOn(
    with secret: Span<UInt8>, after known: CodeAccount, _ knownSecret: Span<UInt8>
  ) {
    let isSameSecret = constantTimeEqual(secret, knownSecret)
    guard isSameSecret, method.isCounted == known.method.isCounted,
      method.timeStepSeconds == known.method.timeStepSeconds
    else { return }
    nextPosition = max(nextPosition, known.nextPosition)
  }
}
