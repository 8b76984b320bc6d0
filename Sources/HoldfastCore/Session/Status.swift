/// What a device answers, as one byte in M3.
public enum Status: UInt8, Sendable, CaseIterable {
  case accepted = 0
  /// Any cryptographic or structural fault of the token.
  case tokenInvalid = 1
  case tokenExpired = 2
  case tokenRevoked = 3
  case tokenUnknown = 4
  case integrityMismatch = 5
  case deviceMismatch = 6
  case factorMissing = 7
  case otpRejected = 8
  case sealRejected = 9
  case lockedOut = 10
  case commandRefused = 11
  case challengeExpired = 12
  case malformed = 13
  /// Too many peers, or a bounded store is full.
  case busy = 14
  case usesExhausted = 15
  case versionTooOld = 16
  /// A fault of the device's own.
  case `internal` = 17

  /// Whether only a device that could open the token may say so: its M3 is sealed.
  public var needsAuthentication: Bool {
    switch self {
    case .accepted, .tokenRevoked, .tokenExpired, .versionTooOld, .usesExhausted, .integrityMismatch, .commandRefused,
      .factorMissing, .lockedOut, .otpRejected, .sealRejected:
      true
    case .tokenInvalid, .tokenUnknown, .deviceMismatch, .challengeExpired, .malformed, .busy, .internal:
      false
    }
  }
}
