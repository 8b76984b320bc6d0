import Glibc

/// The clock that only goes forward, in nanoseconds since the start of the machine.
///
/// Source: clock_gettime(2), `CLOCK_MONOTONIC`, which cannot fail.
package func monotonicNanoseconds() -> UInt64 {
  var time = timespec()
  unsafe clock_gettime(CLOCK_MONOTONIC, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// The same in milliseconds.
package func monotonicMilliseconds() -> UInt64 {
  monotonicNanoseconds() / 1_000_000
}

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
    let (moment, momentOverflows) = Int64(monotonicNanoseconds()).addingReportingOverflow(delay)
    nanoseconds = delayOverflows || momentOverflows ? .max : moment
  }

  /// Milliseconds until the moment, rounded up; 0 once it is over, `Int.max` where it never comes.
  public var remainingMilliseconds: Int {
    guard self != .never else { return .max }
    let remaining = nanoseconds - Int64(monotonicNanoseconds())
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
}

/// Measures laps on the clock that only goes forward, in nanoseconds.
package struct Stopwatch {
  private var last = monotonicNanoseconds()

  /// Starts the first lap.
  package init() {}

  /// Returns the time since the last lap, or since the start, and begins the next lap.
  package mutating func lap() -> UInt64 {
    let now = monotonicNanoseconds()
    defer { last = now }
    return now - last
  }
}
