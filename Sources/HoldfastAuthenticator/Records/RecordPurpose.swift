/// What a record's codes are for. The raw value is what is written.
public enum RecordPurpose: UInt8, Sendable, Equatable, CaseIterable {
  /// One-time passwords.
  case otp = 1
  /// Seals over a command and its parameters.
  case seal = 2
  /// Codes by which the device proves itself to the user; never protected, because a device's code tests a PIN.
  case host = 3
}
