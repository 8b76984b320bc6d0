import Glibc

/// A moment of the monotonic clock by which something has to be done.
public struct Deadline: Sendable, Comparable {
  /// Nanoseconds of `CLOCK_MONOTONIC`, whose epoch is the start of the machine.
  private let nanoseconds: Int64

  /// The moment that never comes.
  public static let never = Deadline(nanoseconds: .max)

  private init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// The moment `milliseconds` from now: at once where that is zero or less, never where it is out of range.
  public init(afterMilliseconds milliseconds: Int) {
    let (delay, delayOverflows) = Int64(max(milliseconds, 0)).multipliedReportingOverflow(by: 1_000_000)
    let (moment, momentOverflows) = Deadline.nowNanoseconds().addingReportingOverflow(delay)
    nanoseconds = delayOverflows || momentOverflows ? .max : moment
  }

  /// Milliseconds until the moment, rounded up; 0 once it is over, `Int.max` where it never comes.
  public var remainingMilliseconds: Int {
    guard self != .never else { return .max }
    let remaining = nanoseconds - Deadline.nowNanoseconds()
    return remaining <= 0 ? 0 : Int((remaining - 1) / 1_000_000) + 1
  }

  /// Whether the moment is over.
  public var hasPassed: Bool {
    remainingMilliseconds == 0
  }

  /// Whether `left` comes first.
  public static func < (left: Deadline, right: Deadline) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// Source: clock_gettime(2), which cannot fail for this clock.
  private static func nowNanoseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
