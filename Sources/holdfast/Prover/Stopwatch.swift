import Glibc

/// Measures laps on the monotonic clock, in nanoseconds.
struct Stopwatch {
  private var last = Stopwatch.now

  /// The time since the last lap, or since the start.
  mutating func lap() -> UInt64 {
    let now = Self.now
    defer { last = now }
    return now - last
  }

  static var now: UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
