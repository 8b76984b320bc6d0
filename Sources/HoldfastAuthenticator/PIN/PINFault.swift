/// Why some text is no PIN, or no good one.
public enum PINFault: Error, Sendable, Equatable, CaseIterable {
  /// It has fewer than 4 or more than 6 digits.
  case length
  /// It has other characters than the digits 0 to 9.
  case notDigits
  /// Its digits count up or down: 1234, 9876, 8901.
  case run
  /// It is one part again and again: 1111, 1212, 123123.
  case repetition
  /// It begins or ends with a year, 1900 to 2099: 198512, 121985.
  case year
}
