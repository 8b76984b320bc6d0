/// Why there is no OCRA code.
public enum OCRAFault: Error, Equatable {
  /// The suite names an input that was not given.
  case missingInput(OCRAInputName)
  /// An input was given that the suite does not name.
  case unexpectedInput(OCRAInputName)
  /// The session information has more bytes than the suite says.
  case sessionTooLong
  /// The suite ends in `-0`: it has the whole HMAC in place of a code.
  case noTruncation
  /// The cryptography failed.
  case cryptography
}

/// The inputs that a suite may name, besides the question.
public enum OCRAInputName: Sendable {
  case counter, pin, session, time
}
