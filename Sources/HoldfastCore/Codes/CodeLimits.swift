/// Which codes a device looks for. Policy may change what is not `static`.
public struct CodeLimits: Sendable, Equatable {
  /// How many counters from the high-water mark on are tried. Source: RFC 4226 §7.4.
  public var counterLookAhead: UInt64
  /// How far a user's clock may be off after a code was just accepted, in seconds. Source: RFC 6238 §6.
  public var clockToleranceSeconds: UInt64
  /// The most characters of a parameter in a command that needs a seal.
  public var sealParameterLength: Int

  /// How many counters are tried for two codes in a row.
  public static let resynchronisingLookAhead: UInt64 = 200
  /// How far a clock may be off where two codes in a row are given, in seconds.
  public static let resynchronisingToleranceSeconds: UInt64 = 3600
  /// By how much the tolerance grows with each day without an accepted code, in seconds: what a quartz clock drifts.
  static let driftSecondsPerDay: UInt64 = 2
  /// The most that the tolerance grows to, in seconds.
  static let greatestToleranceSeconds: UInt64 = 600

  public init(counterLookAhead: UInt64 = 10, clockToleranceSeconds: UInt64 = 30, sealParameterLength: Int = 16) {
    self.counterLookAhead = counterLookAhead
    self.clockToleranceSeconds = clockToleranceSeconds
    self.sealParameterLength = sealParameterLength
  }

  /// The tolerance after `silenceSeconds` without an accepted code.
  func toleranceSeconds(silenceSeconds: UInt64) -> UInt64 {
    let days = min(silenceSeconds, 400 * 86_400) / 86_400
    return max(
      clockToleranceSeconds,
      min(clockToleranceSeconds + days * Self.driftSecondsPerDay, Self.greatestToleranceSeconds))
  }
}
