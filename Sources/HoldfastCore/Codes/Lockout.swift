/// How long a user waits after codes that were not accepted.
///
/// Each is written down before it is compared (RFC 4226 §7.3). Source: docs/protocol.md, Codes.
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
  /// Counts an attempt with these kinds of codes, which are about to be compared.
  mutating func countAttempt(with factors: Factors, at now: UInt64) {
    failedFactors.formUnion(factors)
    failureCount = min(failureCount + 1, maximumInteger)
    let wait = Lockout.seconds(afterFailures: failureCount)
    if wait > 0 { lockedUntil = min(now + wait, maximumInteger) }
  }

  /// The attempt that was counted last was right. Failures with another kind of code stay: who knows one secret does not get
  /// guesses at the other by it.
  mutating func accept(_ factors: Factors) {
    failedFactors.subtract(factors)
    guard !failedFactors.isEmpty else { return unlock() }
    if failureCount > 0 { failureCount -= 1 }
    lockedUntil = 0
  }

  /// The owner's unlock code was accepted.
  public mutating func unlock() {
    (failureCount, failedFactors, lockedUntil) = (0, [], 0)
  }
}
