/// What time it is, supplied from outside.
public protocol Clock: ~Copyable {
  /// Seconds since 1970-01-01 00:00 UTC; nil where there is no real clock.
  func unixSeconds() -> UInt64?

  /// Milliseconds since some moment before the program started; it never goes back.
  func monotonicMilliseconds() -> UInt64
}
