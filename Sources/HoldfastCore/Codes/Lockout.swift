/// How long a user waits after codes that were not accepted.
///
/// Each is written down before it is compared (RFC 4226 §7.3). Source: DESIGN §5, limits.
enum Lockout {
  static let freeFailureCount: UInt64 = 5
  static let firstSeconds: UInt64 = 30
  static let longestSeconds: UInt64 = 86_400

  /// The wait after so many failures in a row: none before the fifth, then 30 s, doubled by each more, up to a day.
  static func seconds(afterFailures count: UInt64) -> UInt64 {
    guard count >= freeFailureCount else { return 0 }
    let doublings = min(count - freeFailureCount, 12)
    return min(firstSeconds << doublings, longestSeconds)
  }
}

extension UserRecord {
  /// Counts a code that is about to be compared.
  mutating func countAttempt(at now: UInt64) {
    failureCount = min(failureCount + 1, maximumInteger)
    let wait = Lockout.seconds(afterFailures: failureCount)
    if wait > 0 { lockedUntil = now + wait }
  }

  /// A code was accepted, or the owner's unlock code.
  public mutating func unlock() {
    (failureCount, lockedUntil) = (0, 0)
  }
}
