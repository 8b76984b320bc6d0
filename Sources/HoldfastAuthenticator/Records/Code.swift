/// A code to be shown.
public struct Code: Sendable, Equatable {
  /// 4 to 10 decimal digits.
  public let text: String
  /// How long it is valid still, by the clock that was given; nil where the time plays no part.
  public let secondsRemaining: UInt64?
}
