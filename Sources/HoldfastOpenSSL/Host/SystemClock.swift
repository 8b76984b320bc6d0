import Glibc
import HoldfastCore

/// The kernel's clocks.
///
/// Source: clock_gettime(2).
public struct SystemClock: Clock, Sendable {
  public init() {}

  public func unixSeconds() -> UInt64? {
    UInt64(exactly: read(CLOCK_REALTIME).tv_sec)
  }

  public func monotonicMilliseconds() -> UInt64 {
    let time = read(CLOCK_MONOTONIC)
    return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
  }

  private func read(_ clock: clockid_t) -> timespec {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return time
  }
}
