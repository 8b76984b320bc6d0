/// What a user's account is for. The raw value is its application index.
public enum CodePurpose: UInt8, Sendable, CaseIterable {
  /// One-time passwords.
  case otp = 1
  /// Seals: codes over one command and its parameters.
  case seal = 2
  /// Host codes: the device's codes, by which a user knows it.
  case host = 3
}
